"""Our own peers in real runs, tiny: what arrives is what was sent, and nothing is left."""

import os
from collections.abc import Iterator
from multiprocessing import get_context

import pytest

from shmbroker.perf.harness import run as runs
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.run import RunFailed, RunRecord, run
from shmbroker.perf.harness.task import Mode, Task
from shmbroker.perf.harness.testing import CorruptingC, CorruptingNumba
from shmbroker.perf.machine.workspace import SHM
from shmbroker.perf.peers.ours_c import OursC
from shmbroker.perf.peers.ours_numba import OursNumba
from shmbroker.perf.peers.ours_python import OursPython
from shmbroker.perf.scenarios.topologies import TOPOLOGIES

OURS = (OursC(), OursNumba(), OursPython())
LIMIT_S = 300.0


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert not list(SHM.glob(f"shmbperf-{os.getpid()}-*"))  # others may be measuring


@pytest.fixture(autouse=True)
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba is loaded once: what is looked at here are the loops, not how processes start."""
    monkeypatch.setattr(runs, "STARTING", get_context("fork"))


def by_name(peer: Peer) -> str:
    return peer.name


each_of_ours = pytest.mark.parametrize("ours", OURS, ids=by_name)


def stream(ours: Peer, topology: str, mode: Mode, size: int = 64) -> RunRecord:
    """A run whose sums are checked; more messages than the ring has slots."""
    task = Task(TOPOLOGIES[topology], size, mode)
    assert ours.supports(task)
    large = size > 1 << 16
    record = run(ours, Plan(task, count=64 if large else 20 * 128, crowded=True), LIMIT_S)
    assert not record.left_behind
    return record


@each_of_ours
@pytest.mark.parametrize("mode", ["single", "combined", "loan"])
def test_ping_pong(ours: Peer, mode: Mode) -> None:
    task = Task(TOPOLOGIES["ping-pong"], 64, mode)
    record = run(ours, Plan(task, warmup=5, groups=15, singles=7, crowded=True), LIMIT_S)
    assert record.figures["p50_ns"] > 0
    assert not record.left_behind


@each_of_ours
@pytest.mark.parametrize("mode", ["single", "combined", "batch", "loan"])
def test_one_to_one(ours: Peer, mode: Mode) -> None:
    assert stream(ours, "one-to-one", mode).figures["messages_per_s"] > 0


@each_of_ours
def test_three_senders(ours: Peer) -> None:
    stream(ours, "three-to-one", "batch", 1 << 10)


@each_of_ours
@pytest.mark.parametrize("mode", ["single", "batch"])
def test_receivers_that_compete(ours: Peer, mode: Mode) -> None:
    stream(ours, "one-to-three-competing", mode)


@each_of_ours
def test_subscribers(ours: Peer) -> None:
    stream(ours, "one-to-three-broadcast", "single")


@each_of_ours
@pytest.mark.parametrize("mode", ["single", "loan"])
def test_messages_of_a_mebibyte(ours: Peer, mode: Mode) -> None:
    stream(ours, "one-to-one", mode, 1 << 20)


@pytest.mark.parametrize("corrupting", [CorruptingC(), CorruptingNumba()], ids=by_name)
@pytest.mark.parametrize("mode", ["single", "combined", "batch", "loan"])
def test_a_damaged_message_makes_the_run_fail(corrupting: Peer, mode: Mode) -> None:
    """The compiled loops compare by themselves: these look whether they do."""
    with pytest.raises(RunFailed, match="MessageDamaged"):
        stream(corrupting, "one-to-one", mode)
