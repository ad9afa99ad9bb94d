"""Transactions that are open when their broker leaves its cluster: they go on at the next one.

The broker that leaves asks what is acknowledged in them, and gives that to its successor, which has
it for nobody else.  The next session asks for it there before anything else: a transaction of which
all is there goes on, any other one was rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shmbroker.netbridge.remote.action import Finish
from shmbroker.netbridge.remote.body import asked, named, told
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.outcome import End, Outcome, Why
from shmbroker.netbridge.wire.frame import Body, Frame, Parting
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client


@dataclass(slots=True)
class Work:
    """Of a transaction since its last commit."""

    generation: int
    """Of the session that it is of."""
    deliveries: list[int]
    """Acknowledged with it; the program goes on with the list."""


class Travelling:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.works: dict[int, Work] = {}
        """By transaction with work."""
        self._was_asked = False
        self._has_parted = False
        """It was asked once: who has put something aside for it keeps that until it comes, and so
        does whoever takes over from that one."""
        self._wanted: dict[int, list[int]] | None = None
        """What the next session asks for; None: nothing."""
        self._generations: dict[int, int] = {}
        """Of deliveries that are in hand still: of the session that they came in."""

    def hears(self, frame: Frame) -> bool:
        """The broker leaves, and asks."""
        if isinstance(frame, Parting):
            self._was_asked = self._has_parted = True
            self._client.calls.put_first(self._call(self._open()))
            self._client.pump()
        return isinstance(frame, Parting)

    def _call(self, transactions: dict[int, list[int]]) -> Call:
        body = asked(open=list(transactions.items()))
        return Call(self._client.next_id(), Verb.TRANSACTIONS, body=body, is_internal=True)

    def _open(self) -> dict[int, list[int]]:
        """Also those whose commit nobody has answered."""
        client = self._client
        works = self.works.items()
        found = {
            number: list(work.deliveries)
            for number, work in works
            if work.generation == client.generation
        }
        found |= {each.value: list(each.settles) for each in self._commits()}
        return found

    def _commits(self) -> list[Call]:
        calls = self._client.calls
        return [each for each in (*calls.sent.values(), *calls.waiting) if each.verb is Verb.COMMIT]

    def ends(self) -> None:
        """The session, and another one is made."""
        if self._was_asked:
            self._wanted, self._was_asked = self._open(), False
        kept = {each for deliveries in (self._wanted or {}).values() for each in deliveries}
        self._generations = {
            each: self._generations.get(each, self._client.generation) for each in kept
        }

    def forget(self) -> None:
        """Everything was given up."""
        self._was_asked, self._wanted = False, None
        self._generations.clear()

    def begun(self, transaction: int, deliveries: list[int], generation: int) -> None:
        """Something was done in it since its last commit; `deliveries`: are acknowledged with it,
        as they come.  `generation`: that the program saw, as the session may have been made again
        since; 0: this one."""
        work = Work(generation or self._client.generation, deliveries)
        self.works.setdefault(transaction, work)

    def may_commit(self, call: Call) -> bool:
        """Else it has ended."""
        client = self._client
        work = self.works.pop(call.value, None)
        if work is None:
            client.did.append(Finish(call.id, Outcome(End.OK, Why.DONE)))
        elif work.generation != client.generation:
            call.repeated = self.goes_on(call)
            if not call.repeated:
                client.did.append(Finish(call.id, Outcome(End.FAILED, Why.ROLLED_BACK)))
        return work is not None and (call.repeated or work.generation == client.generation)

    def takes(self, call: Call) -> bool:
        """The next session carries it out; else that counts its deliveries anew."""
        goes_on = self.goes_on(call)
        if goes_on:
            call.repeated = True
        else:
            call.settles = ()
        return goes_on

    def goes_on(self, call: Call) -> bool:
        """It is a commit, and the next session is asked whether its transaction does."""
        wanted = self._wanted
        return call.verb is Verb.COMMIT and wanted is not None and call.value in wanted

    def is_ours(self, call: Call) -> bool:
        """Its deliveries are of this session, or it has them from one before."""
        kept = self._generations
        if call.generation == self._client.generation:
            return True
        return all(kept.get(each) == call.generation for each in call.numbers)

    def asks(self) -> Call | None:
        """What the next session says first; it says also that it wants nothing."""
        if self._wanted is None and self._has_parted:
            self._wanted = {}
        if self._wanted is None:
            return None
        call = self._call(self._wanted)
        call.repeated = True
        return call

    def answered(self, call: Call, body: Body, now: float) -> None:
        """Which of them go on; what nobody waits for goes back.  InvalidArgument."""
        wanted = self._wanted
        if not call.repeated or wanted is None:
            return
        whole = named({"whole": []} | told(body), "whole", list)
        client, self._wanted = self._client, None
        goes_on = {each for each in whole if isinstance(each, int)}
        committing = {each.value for each in self._commits()}
        for number in wanted.keys() & goes_on:
            client.in_hand.update(dict.fromkeys(wanted[number], None))
            if number in self.works:
                self.works[number].generation = client.generation
            elif number not in committing:  # it was rolled back meanwhile
                for each in wanted[number]:
                    client.gives_back(each, 1, now)
