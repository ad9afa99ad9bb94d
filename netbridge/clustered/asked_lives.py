"""Which of the other lives are asked for votes: over links that this broker has made."""

from __future__ import annotations

from collections.abc import Container, Mapping

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.codec import from_voter
from shmbroker.netbridge.election.voters import Hears
from shmbroker.netbridge.wire.frame import Frame, Vote


class AskedLives:
    """Of the network thread."""

    def __init__(self, machine: Membership) -> None:
        self._machine = machine
        self.hears: Hears | None = None
        """Who asks; None: nobody yet."""
        self._there: dict[str, End] = {}
        self._told = Electorate((), 0)

    def looks(self, ends: Mapping[End, int], accepted: Container[End]) -> None:
        """`ends`: with the links that they are; `accepted`: those that another one has made."""
        hears = self.hears
        if hears is None:
            return
        electorate = self._machine.electorate
        there: dict[str, End] = {}
        for end, link in ends.items():
            live = None if end in accepted else self._machine.live_at(link)
            name = "" if live is None else live.node.hex()
            if name and (name not in there or self._there.get(name) is end):
                there[name] = end
        gone = [name for name, end in self._there.items() if there.get(name) is not end]
        for name in gone:
            del self._there[name]
            hears.voter_down(name)
        if electorate != self._told:
            self._told = electorate
            hears.voters_are(electorate)
        for name, end in there.items():
            if name not in self._there:
                self._there[name] = end
                hears.voter_up(name)

    def heard(self, end: End, frame: Vote) -> None:
        """Malformed says what is wrong."""
        said = from_voter(frame.body)
        voter = next((name for name, each in self._there.items() if each is end), "")
        if voter and self.hears is not None:
            self.hears.voter_said(voter, said)

    def ask(self, voter: str, frame: Frame) -> None:
        end = self._there.get(voter)
        if end is not None:
            end.say(frame)
