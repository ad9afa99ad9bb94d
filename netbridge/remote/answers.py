"""Answers to the calls of a program, and what follows from each.

One that no broker of ours gives ends its call all the same, with an error that says so, and then
the link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from shmbroker.core.codes import ENDED, OK, REVOKED, UNCONFIRMED
from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.remote.action import Disconnect, Event, Say, Unmade
from shmbroker.netbridge.remote.body import is_map, numbers_of, raised
from shmbroker.netbridge.remote.broken import SessionBroken
from shmbroker.netbridge.remote.call import OF_DELIVERIES, STANDING, Call
from shmbroker.netbridge.remote.fate import may_be_done
from shmbroker.netbridge.remote.outcome import End, Outcome, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.remote.standing import opened
from shmbroker.netbridge.wire.frame import Result
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Level, Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client

OF_MAPS: Final = frozenset(
    {*STANDING, Verb.DECLARE, Verb.LOOK, Verb.OPERATE, Verb.ORDER, Verb.REQUEST, Verb.TRANSACTIONS}
)
"""Their answer, if it is no error, is a map, or has no body."""
OF_RECORDS: Final = frozenset({Verb.GET, Verb.BROWSE})


class Answers:
    def __init__(self, client: Client) -> None:
        self._client = client

    def hears(self, frame: Result, now: float) -> None:
        """SessionBroken: it is no answer, or an odd one."""
        client = self._client
        call = client.calls.answered(frame.call)
        if call is None:
            raise SessionBroken(f"{frame.call} is answered, and was not asked")
        client.closing.hears(now, call)
        try:
            self._answered(call, frame, now)
        except (SessionBroken, Error) as odd:
            self._is_odd(call, str(odd), now)
            raise SessionBroken(f"the answer to {call.verb.value!r}: {odd}") from None

    def _answered(self, call: Call, frame: Result, now: float) -> None:
        client = self._client
        _check(call, frame)
        if call.verb is Verb.GET and frame.code > OK and client.moving.is_leaving:
            client.calls.put(call)
            return
        if call.verb in OF_DELIVERIES:
            self._settled(call, frame.code)
        if client.moving.has_left(call, now):
            return
        if call.verb is Verb.END:
            client.lets_go()
            client.phase = Phase.CLOSED
            client.did.append(Disconnect(""))
        elif frame.code < OK:
            self._refused(call, frame, now)
        else:
            self._made(call, frame, now)
            outcome = Outcome(End.OK, Why.DONE, frame.code, frame.value, frame.level, frame.body)
            client.doubt.end(call, outcome)
            client.finish(call, outcome)
        client.look_whether_made(Event.FAILOVER_COMPLETED)
        client.pump()

    def _is_odd(self, call: Call, why: str, now: float) -> None:
        """Nobody answers it again.  What it has opened is left: nobody knows what it is."""
        client = self._client
        if call.verb in STANDING:
            client.leave(call.target)
            client.voided.leaves(call.target)
            if call.is_internal:
                client.did.append(Unmade(call.target, malformed(why)))
        elif call.verb is Verb.TRANSACTIONS:
            client.travelling.answered(call, b"", now)
        elif call.verb is Verb.DECLARE and call.is_internal:  # what it uses may not be there
            client.moving.turns_back(now)
        if not call.is_abandoned:
            outcome = client.doubt.given_up(call, Why.MALFORMED)
            client.finish(call, replace(outcome, body=why.encode()))

    # --- what follows -------------------------------------------------------------------------

    def _settled(self, call: Call, code: int) -> None:
        client = self._client
        if not client.travelling.is_ours(call):
            return
        client.settling.difference_update(call.numbers)
        if code >= OK or code == REVOKED:  # else it is in hand still
            self._dealt_with(call.numbers)

    def _dealt_with(self, numbers: Iterable[int]) -> None:
        client = self._client
        for number in numbers:
            consumer = client.in_hand.pop(number, None)
            if consumer is not None:
                consumer.settle(number)
                credit = consumer.news() if client.moving.gives_credit else None
                if credit is not None and consumer.target in client.consumers:
                    client.did.append(Say(credit))

    def _made(self, call: Call, frame: Result, now: float) -> None:
        """Of an answer that is ok."""
        client = self._client
        if call.verb in STANDING and not call.is_abandoned:
            opened(client, call, frame)
        elif call.verb is Verb.COMMIT:
            self._dealt_with(call.settles)
        elif call.verb is Verb.DECLARE and call.is_internal and client.moving.has_found():
            client.make_again()
        elif call.verb is Verb.TRANSACTIONS:
            client.travelling.answered(call, frame.body, now)
        elif call.verb is Verb.GET and frame.code:
            taken = numbers_of(frame.value, frame.code, frame.body)
            client.in_hand.update(dict.fromkeys(taken, None))
            if call.is_abandoned:
                client.gives_back(frame.value, frame.code, now)

    def _refused(self, call: Call, frame: Result, now: float) -> None:
        client = self._client
        why = Why.ANSWERED
        if call.is_internal and call.verb is Verb.DECLARE:
            client.moving.turns_back(now)
        elif call.verb is Verb.TRANSACTIONS:
            client.travelling.answered(call, b"", now)
        elif call.is_internal and call.verb in STANDING:
            client.leave(call.target)
            client.did.append(Unmade(call.target, raised(frame.code, frame.body)))
        elif call.verb in OF_DELIVERIES and frame.code == REVOKED:
            why = Why.REVOKED
        elif call.verb is Verb.COMMIT:
            self._dealt_with(call.settles)  # the broker has given them back
            if frame.code == ENDED:  # it has no mark: another node need not have it
                why = Why.ROLLED_BACK if call.node == client.node else Why.CLOSED
        elif may_be_done(call, client.node, client.producers.get(call.target)):
            why = Why.CLOSED
        answer = frame.code, frame.value, Level.SHM, frame.body
        if frame.code == UNCONFIRMED or why is Why.CLOSED:
            outcome = Outcome(End.UNKNOWN, why, *answer, client.doubt.begin(call))
        else:
            outcome = Outcome(End.FAILED, why, *answer)
            client.doubt.end(call, outcome)
            client.voided.refused(call, outcome)
        client.finish(call, outcome)


def malformed(why: object) -> Malformed:
    """What a program is told of it."""
    return Malformed(f"{Why.MALFORMED.value}: {why}")


def _check(call: Call, frame: Result) -> None:
    """SessionBroken: it is of another kind than what is asked for."""
    if frame.code >= OK and call.verb in OF_MAPS and not is_map(frame.body):
        raise SessionBroken("it is no map")
    if frame.code > OK and call.verb in OF_RECORDS:
        numbers_of(frame.value, frame.code, frame.body)
