"""The voters of a node, as a member talks to them: witnesses, lives of a cluster, a lock manager.

They are known by the names in the electorate.  What is asked of a voter that is not there is lost;
when it is up again, the candidate asks it again.
"""

from __future__ import annotations

from typing import Protocol

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import FromMember, FromVoter


class Hears(Protocol):
    """Called in the network thread."""

    def voters_are(self, electorate: Electorate) -> None:
        """Of a cluster, whose lives come and go."""

    def voter_up(self, voter: str) -> None: ...

    def voter_down(self, voter: str) -> None: ...

    def voter_said(self, voter: str, what: FromVoter) -> None: ...


class Voters(Protocol):
    def begin(self, hears: Hears) -> None:
        """Connects, and goes on doing so."""

    def ask(self, voter: str, what: FromMember) -> None:
        """In the network thread."""

    def close(self) -> None: ...
