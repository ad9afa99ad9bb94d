"""Each condition of voters, candidates and leases is needed: without it some test here fails.

A condition is cut twice: once as if it had always held, once as if it never did.  Who may be live
rests on these; the worlds of the simulation look for what nobody has thought of.
"""

from __future__ import annotations

from typing import Final

import pytest

from shmbroker.netbridge.election.candidate import Candidate
from shmbroker.netbridge.election.lease import Lease
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Copy, Grant, Listed, Question
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.election.voter import Voter
from tests.support import sources
from tests.support.conditions import all_of, unneeded

OWNERS: Final = (Voter, Candidate, Lease, Ledger, Copy, Grant, Listed, Question, Quorum)
TESTS: Final = all_of("tests.netbridge.election", but=("test_conditions", "test_codec"))
FOR_ITS_TYPE: Final = {
    "Voter._is_on_list: known is not None -> True",  # a live is known, or was after one that is
    "Candidate._propose: newest is not None -> True",  # nothing is not decided by a minority
}
"""What cannot be otherwise, and mypy does not know."""


@pytest.mark.skipif(not sources.ARE_IMPORTED, reason="what is compiled has no source to be changed")
@pytest.mark.parametrize("owner", OWNERS, ids=[each.__name__ for each in OWNERS])
def test_each_condition_is_needed(owner: type) -> None:
    not_seen = {each for each in FOR_ITS_TYPE if each.startswith(f"{owner.__name__}.")}
    assert unneeded(owner, TESTS) == not_seen
