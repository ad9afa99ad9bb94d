"""Calls of which nobody knows what became of them, by their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shmbroker.core.codes import REVOKED
from shmbroker.netbridge.remote import fate
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.fate import Fate
from shmbroker.netbridge.remote.numbers import OPEN_MAX
from shmbroker.netbridge.remote.outcome import End, Outcome, Token, Why
from shmbroker.netbridge.remote.producing import Producing
from shmbroker.netbridge.wire.words import Verb

MARKED: Final = frozenset({Verb.COMMIT, Verb.SCHEDULE})
"""Each has a number of its own in the session, and the broker keeps a mark of it."""
NO_PRODUCER: Final = 0


def _bounded(kept: dict[Token, Any]) -> None:
    """The oldest goes."""
    if len(kept) > OPEN_MAX:
        del kept[next(iter(kept))]


class Doubt:
    def __init__(self, producers: Mapping[int, Producing]) -> None:
        self._producers = producers
        self._marked: dict[Token, Call] = {}
        self.known: dict[Token, Outcome] = {}
        """Outcomes that came after their calls had ended as unknown."""

    @property
    def is_open(self) -> bool:
        """Of some nobody knows yet."""
        return bool(self._marked) or any(each.unknown for each in self._producers.values())

    def begin(self, call: Call) -> Token | None:
        """It has ended as unknown: what names it, if it may be asked again."""
        token, calls = self._place(call)
        if token is not None:
            calls[token] = call
        return token

    def _place(self, call: Call) -> tuple[Token | None, dict[Token, Call]]:
        if call.verb in MARKED and call.value:
            _bounded(self._marked)
            return Token(NO_PRODUCER, call.value, 1), self._marked
        producing = self._producers.get(call.target)
        if call.verb is not Verb.PUBLISH or producing is None or not call.value:
            return None, {}
        return Token(call.target, call.value, call.count), producing.unknown

    def given_up(self, call: Call, why: Why) -> Outcome:
        return self.unanswered(call, fate.given_up(call), why)

    def unanswered(self, call: Call, what: Fate, why: Why) -> Outcome:
        """How a call ends of which nothing was heard."""
        if what is Fate.ROLLED_BACK:
            return Outcome(End.FAILED, Why.ROLLED_BACK)
        if what is Fate.REVOKED:
            return Outcome(End.FAILED, Why.REVOKED, REVOKED)
        if what is Fate.UNKNOWN:
            token, calls = self._place(call)
            call.is_cancelled = why is Why.CANCELLED and token not in calls
            return Outcome(End.UNKNOWN, why, token=self.begin(call))
        return Outcome(End.FAILED, why)

    def forgets(self, calls: list[Call]) -> list[Call]:
        """Their session is over: those that were cancelled are not answered, or asked again."""
        for call in calls:
            token, unknown = self._place(call)
            if call.is_cancelled and token is not None:
                unknown.pop(token, None)
        return calls

    def of(self, token: Token) -> Call | None:
        producing = self._producers.get(token.producer)
        calls = self._marked if producing is None else producing.unknown
        return calls.get(token)

    def end(self, call: Call, outcome: Outcome) -> None:
        """An answer, perhaps to what was unknown, or is asked again."""
        token, calls = self._place(call)
        if token is not None and token in calls:
            del calls[token]
            self.known[token] = outcome
            _bounded(self.known)
