"""Calls that are not done, because they were refused or the program waits no longer.

The numbers of such a publish will not come, and the broker is told; so it is of a take, which would
have the next message there for nobody, and of what was to be opened.  What is behind it in the same
`publish_many` is not done either: what was published has no holes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from shmbroker.core.codes import UNCONFIRMED
from shmbroker.netbridge.remote.call import OF_DELIVERIES, STANDING, Call
from shmbroker.netbridge.remote.outcome import End, Outcome, Why
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client


LEFT: Final = frozenset({Verb.GET, *STANDING})
"""What the broker would have for nobody."""


class Voided:
    def __init__(self, client: Client) -> None:
        self._client = client

    def refused(self, call: Call, outcome: Outcome) -> None:
        """The broker refuses what was said behind it, too; nobody waits for these answers."""
        client = self._client
        self._decide(call, call.value + outcome.value)
        for each in client.calls.behind(call):
            nothing = _not_done(outcome)
            client.finish(each, nothing)
            client.calls.abandon(each)
            if not each.was_sent:
                client.doubt.end(each, nothing)
                self._decide(each, each.value)

    def ended(self, call: Call, outcome: Outcome) -> None:
        """What is called behind it from now on is done only if it is there."""
        is_there = outcome.end is End.OK or outcome.code == UNCONFIRMED
        if call.many is not None and call.many.failed is None and not is_there:
            call.many.failed = _not_done(outcome)

    def abandon(self, call: Call, why: Why) -> None:
        """The program waits no longer."""
        behind = [] if call.was_sent else self._client.calls.behind(call)
        for each in (call, *behind):
            if not each.is_abandoned:
                self._abandon(each, why)
        self._client.pump()

    def _abandon(self, call: Call, why: Why) -> None:
        client = self._client
        if not call.was_sent and call.verb in OF_DELIVERIES:
            client.settling.difference_update(call.numbers)
        client.finish(call, client.doubt.given_up(call, why))
        client.calls.abandon(call)
        if call.is_cancelled and not call.was_sent:
            # a former session may have said it, but nobody asks what became of it, or answers
            client.doubt.forgets([call])
            self._decide(call, call.value)
        elif call.verb in LEFT and call.was_sent:
            self.leaves(call.target)

    def leaves(self, target: int) -> None:
        """The broker need not have it."""
        client = self._client
        client.calls.put(Call(client.next_id(), Verb.LEAVE, target, is_internal=True))

    def _decide(self, call: Call, first: int) -> None:
        """The broker need not keep its numbers."""
        client = self._client
        if call.verb is Verb.PUBLISH and call.value and call.target in client.producers:
            count = call.value + call.count - first
            void = Call(client.next_id(), Verb.DECIDED, call.target, first, count)
            void.is_internal = True
            client.calls.put(void)


def _not_done(outcome: Outcome) -> Outcome:
    """Of what was never said, or refused as a whole."""
    return replace(outcome, end=End.FAILED, value=0, token=None)
