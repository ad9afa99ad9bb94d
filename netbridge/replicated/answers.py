"""What voters say, told to the machine of the member that asks them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import FromVoter
from shmbroker.netbridge.member.action import Action
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.replicated.process import now


class Asks(Protocol):
    """`acting.Acting`."""

    machine: Member

    def does(self, actions: Iterable[Action]) -> None: ...


class Answers:
    """`election.voters.Hears`."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks

    def voters_are(self, electorate: Electorate) -> None:
        self._asks.does(self._asks.machine.voters_are(electorate, now()))

    def voter_up(self, voter: str) -> None:
        self._asks.does(self._asks.machine.voter_up(voter, now()))

    def voter_down(self, voter: str) -> None:
        self._asks.does(self._asks.machine.voter_down(voter))

    def voter_said(self, voter: str, what: FromVoter) -> None:
        self._asks.does(self._asks.machine.voter_said(voter, what, now()))
