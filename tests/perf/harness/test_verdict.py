"""What was sent must have arrived where the topology says."""

import pytest

from shmbroker.perf.harness.role_result import Checksum, RoleResult
from shmbroker.perf.harness.verdict import SumsDiffer, check
from shmbroker.perf.scenarios.topologies import TOPOLOGIES


def sent(count: int, total: int) -> RoleResult:
    return RoleResult(0, 1, sent=Checksum(count, total))


def received(count: int, total: int) -> RoleResult:
    return RoleResult(0, 1, received=Checksum(count, total))


def test_competing_receivers_are_added_up() -> None:
    shares = [received(1, 5), received(0, 0), received(2, 10)]
    check(TOPOLOGIES["one-to-three-competing"], [sent(3, 15), *shares])


def test_each_receiver_of_a_broadcast_must_have_all() -> None:
    topology = TOPOLOGIES["one-to-three-broadcast"]
    check(topology, [sent(3, 15), *[received(3, 15)] * 3])
    with pytest.raises(SumsDiffer):
        check(topology, [sent(3, 15), received(3, 15), received(3, 15), received(2, 10)])


@pytest.mark.parametrize("arrived", [received(2, 15), received(3, 14), received(0, 0)])
def test_another_count_or_sum_fails(arrived: RoleResult) -> None:
    with pytest.raises(SumsDiffer, match="arrived"):
        check(TOPOLOGIES["one-to-one"], [sent(3, 15), arrived])


def test_nothing_sent_is_no_success() -> None:
    with pytest.raises(SumsDiffer):
        check(TOPOLOGIES["one-to-one"], [sent(0, 0), received(0, 0)])
