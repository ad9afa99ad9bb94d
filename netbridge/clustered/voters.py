"""The other lives of a cluster, as the voters of a member of a replicated node."""

from __future__ import annotations

from shmbroker.netbridge.clustered.members import Members
from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.codec import encode
from shmbroker.netbridge.election.question import FromMember
from shmbroker.netbridge.election.threshold import IMPOSSIBLE
from shmbroker.netbridge.election.voters import Hears
from shmbroker.netbridge.wire.frame import Vote

NOBODY = Electorate((), IMPOSSIBLE)
"""Until others are known."""


class Lives:
    """`election.voters.Voters`."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def begin(self, hears: Hears) -> None:
        self._members.heard_by(hears)

    def ask(self, voter: str, what: FromMember) -> None:
        self._members.asked.ask(voter, Vote(encode(what)))

    def close(self) -> None:
        """Its links end with the cluster's, in good order: for a live that is a release."""
