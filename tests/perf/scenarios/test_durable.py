"""The durable benchmark's arithmetic: what strace says, promises, verdicts, the table."""

from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from shmbroker.perf.machine.syncs import counted
from shmbroker.perf.scenarios.durable.contender import Contender, Promise, Slice
from shmbroker.perf.scenarios.durable.table import table
from shmbroker.perf.scenarios.durable.verdicts import record_bytes, verdicts
from tests.support.host import PATIENCE, journaling

KEPT, BROKEN = Promise(200, 203), Promise(200, 3)

STRACE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 98.76    0.031200         156       200           fdatasync
  1.24    0.000392          98         4         1 fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.031592         154       204         1 total
"""


def contender(name: str, waits_us: list[int], per_s: list[float], singly: Promise) -> Contender:
    slices = [Slice((1000 * wait,) * 5, rate) for wait, rate in zip(waits_us, per_s, strict=True)]
    return Contender(name, "1.0", {64: slices}, singly, Promise(4096, 4))


BARE = contender("bare disk", [100, 200, 100], [1280e6, 1280e6, 1280e6], KEPT)


def test_all_kinds_of_syncs_are_added_up() -> None:
    assert counted(STRACE) == 204
    assert counted("") == 0


def test_a_promise_is_kept_if_each_confirm_has_a_sync() -> None:
    assert KEPT.is_kept
    assert not BROKEN.is_kept
    assert not Promise(200, 199).is_kept
    assert Promise(10, 0).per_sync == float("inf")


def test_ratios_are_of_the_same_round() -> None:
    ours = contender("ours", [150, 200, 140], [5e6, 5e6, 5e6], KEPT)
    wait, journal = verdicts(BARE, ours, [], 64)
    assert wait.figure == pytest.approx(1.4)  # of 1.5, 1.0 and 1.4
    assert wait.is_met
    assert journal.figure == pytest.approx(0.5)  # 128 bytes a message
    assert journal.is_met


def test_a_missed_target_is_told() -> None:
    ours = contender("ours", [151, 302, 151], [4.9e6] * 3, KEPT)
    wait, journal = verdicts(BARE, ours, [], 64)
    assert not wait.is_met
    assert not journal.is_met
    assert str(wait).startswith("MISSED")


def test_nobody_is_compared_with_a_peer_that_does_not_sync() -> None:
    ours = contender("ours", [100] * 3, [500.0] * 3, KEPT)
    slow, quick = (contender(name, [300] * 3, [rate] * 3, KEPT)
                   for name, rate in (("slow", 10.0), ("quick", 99.0)))  # fmt: skip
    cheat = contender("cheat", [10] * 3, [400.0] * 3, BROKEN)
    unknown = Contender("unknown", slices=cheat.slices)
    best = verdicts(BARE, ours, [slow, cheat, unknown, quick], 64)[-1]
    assert "quick" in best.text
    assert best.is_met
    assert len(verdicts(BARE, ours, [cheat], 64)) == 2


def test_the_table_marks_who_does_not_sync() -> None:
    honest = contender("honest", [300] * 3, [10.0] * 3, KEPT)
    cheat = contender("cheat", [10] * 3, [400.0] * 3, BROKEN)
    failed = Contender("failed")
    lines = table(BARE, [honest, cheat, failed], 64).splitlines()
    rows = {line.split()[0]: line for line in lines[2:]}
    assert "failed" not in rows
    assert " syncs " in rows["honest"]
    assert "DOES NOT SYNC" in rows["cheat"]
    assert rows["cheat"].endswith("66.67  1,024.00")


@pytest.mark.parametrize("size", [1, 64, 100])
def test_a_record_is_as_long_as_the_journal_makes_it(size: int, vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        queue.publish_many([bytes(size)] * 2, confirm="shm")
        with journaling(vhost, tmp_path):
            queue.confirm(timeout=PATIENCE)
    with Replay(tmp_path) as replay:
        first, second = (each.offset for each in replay if each.kind == records.MESSAGE)
    assert second - first == record_bytes(size)
