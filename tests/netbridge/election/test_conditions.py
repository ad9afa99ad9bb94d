"""Each condition of voters, candidates and leases is needed: without it some test here fails.

A condition is cut twice: once as if it had always held, once as if it never did.  What is decided
about lives rests on these; the worlds of the simulation look for what nobody has thought of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Final

import pytest

from shmbroker.netbridge.election.candidate import Candidate
from shmbroker.netbridge.election.lease import Lease
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Copy, Grant, Listed, Question
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.election.voter import Voter
from tests.netbridge.election import (
    test_candidate,
    test_lease,
    test_ledger,
    test_threshold,
    test_voter,
)
from tests.support import sources
from tests.support.conditions import Cut, cuts_of

OWNERS: Final = (Voter, Candidate, Lease, Ledger, Copy, Grant, Listed, Question, Quorum)
TESTS: Final = (test_voter, test_candidate, test_lease, test_ledger, test_threshold)
FOR_ITS_TYPE: Final = {
    "Voter._is_on_list: known is not None -> True",  # a live is known, or was after one that is
    "Candidate._propose: newest is not None -> True",  # nothing is not decided by a minority
}
"""What cannot be otherwise, and mypy does not know."""


def all_of(module: ModuleType) -> Iterator[Callable[[], None]]:
    for name, test in vars(module).items():
        if name.startswith("test_"):
            marks = getattr(test, "pytestmark", [])
            names, sets = marks[0].args if marks else ("", [()])
            for each in sets:
                yield partial(test, *([each] if isinstance(names, str) and names else each))


def objects(cut: Cut) -> bool:
    with cut.applied():
        for module in TESTS:
            for test in all_of(module):
                try:
                    test()
                except Exception:  # noqa: BLE001  # whatever a cut breaks
                    return True
    return False


@pytest.mark.skipif(not sources.ARE_IMPORTED, reason="what is compiled has no source to be changed")
@pytest.mark.parametrize("owner", OWNERS, ids=[each.__name__ for each in OWNERS])
def test_each_condition_is_needed(owner: type) -> None:
    cuts = list(cuts_of(owner))
    unneeded = {cut.name for cut in cuts if not objects(cut)}
    assert unneeded == {each for each in FOR_ITS_TYPE if each.startswith(f"{owner.__name__}.")}


def test_without_a_cut_nothing_objects() -> None:
    for module in TESTS:
        for test in all_of(module):
            test()
