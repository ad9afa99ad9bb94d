"""Each condition of a member is needed.

A condition is cut twice: once as if it had always held, once as if it never did.  What is confirmed
rests on these; the worlds of the simulation look for what nobody has thought of.
"""

from __future__ import annotations

from typing import Final

import pytest

from shmbroker.netbridge.member.claiming import Claiming
from shmbroker.netbridge.member.comparing import Comparing
from shmbroker.netbridge.member.core import Core
from shmbroker.netbridge.member.draining import Draining
from shmbroker.netbridge.member.follower import Follower
from shmbroker.netbridge.member.founding import Founding
from shmbroker.netbridge.member.joining import Joining
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.passive import Passive
from shmbroker.netbridge.member.replicas import Replicating
from shmbroker.netbridge.member.serving import Serving
from tests.support import sources
from tests.support.conditions import all_of, unneeded

OWNERS: Final = (
    Member, Draining, Serving, Replicating, Follower, Passive, Joining, Founding, Claiming,
    Comparing, Core,
)  # fmt: skip
TESTS: Final = all_of("tests.netbridge.member", but=("test_conditions", "test_codec"))
MAKES_NO_DIFFERENCE: Final = {
    # who has left is not on the list that is safe, whatever lists come behind that
    "Replicating._safe_lists: not self.lists -> True",
    "Replicating.voters_told: not self.lists -> True",
    # who hands over does so to one that has not left: it counts on
    "Replicating._drop_those_that_left: self.state in (State.LIVE, State.SUSPENDED) -> True",
    # a list is safe when all on it follow, and who is live may become so again
    "Replicating._drop_those_that_left: self.state is State.SUSPENDED -> True",
    "Replicating._drop_those_that_left: self.counted <= self.followers.keys() -> True",
    # whose command is asked has a grant, which mypy does not know
    "Passive.promoted: self.granted is not None -> True",
}


@pytest.mark.skipif(not sources.ARE_IMPORTED, reason="what is compiled has no source to be changed")
@pytest.mark.parametrize("owner", OWNERS, ids=[each.__name__ for each in OWNERS])
def test_each_condition_is_needed(owner: type) -> None:
    not_seen = {each for each in MAKES_NO_DIFFERENCE if each.startswith(f"{owner.__name__}.")}
    assert unneeded(owner, TESTS) == not_seen
