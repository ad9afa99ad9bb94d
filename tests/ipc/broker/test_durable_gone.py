"""Durable queues that were deleted: they do not come back, and a cold start does not need what they
had, however many there were."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.core.layout import QUEUE_ROWS, RING_SETTINGS_AT
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.export import compacted, exported, imported
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.settings.setting import BY_NAME
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import SHM
from tests.support.changed_library import IPC, ChangedLibrary, all_sources
from tests.support.host import PATIENCE, after_the_host_died, journaling

ROOT = Path(__file__).parents[3]
SMALL = 64 << 10
ARENA = 4 << 20
HEAD_BYTES = 9 * 8
"""Of a declaration (ipc/catalog/catalog.h); its end: lengths of the name and of the settings."""


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """This process may have only so many more than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(each.name) for each in Path("/proc/self/fd").iterdir()}
    free = (each for each in itertools.count() if each not in used)
    limit = next(itertools.islice(free, more, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def names(broker: Broker) -> list[str]:
    return sorted(queue.name for queue in broker.queues())


def rings(vhost: str) -> int:
    return sum(1 for _ in SHM.glob(f"shmbroker.{vhost}.queue-*"))


def used_once(broker: Broker, name: str) -> None:
    queue = broker.declare_queue(name, durable=True, slots=16)
    queue.publish(b"used", timeout=PATIENCE)
    queue.receive(timeout=PATIENCE)
    broker.delete_queue(name, force=True)


# --- what a start takes ---------------------------------------------------------------------------


def test_a_cold_start_opens_no_file_for_each_queue(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        for number in range(100):
            used_once(broker, f"gone {number}")
        for number in range(100):
            broker.declare_queue(f"kept {number}", durable=True, slots=16)
        queue = broker.declare_queue("ids", durable=True, slots=16, duplicate_ids=8)
        queue.publish(b"kept", message_id=b"one", timeout=PATIENCE)
    with few_descriptors(40), after_the_host_died(vhost, tmp_path) as broker:
        assert len(broker.queues()) == 101
        assert rings(vhost) == 101
        assert broker.queue("ids").publish(b"again", message_id=b"one", timeout=PATIENCE) is None
        assert broker.queue("ids").receive(timeout=PATIENCE) == b"kept"


def declaration(folder: Path, vhost: str) -> bytes:
    """How a small durable queue is declared, in as few bytes as can be."""
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, folder):
        broker.declare_queue("a", durable=True, slots=16)
    with Replay(folder) as replay:
        body = next(each.body for each in replay if each.kind == records.QUEUE)
    settings = BY_NAME["durable"].at + 8 - RING_SETTINGS_AT
    head = body[: HEAD_BYTES - 8] + settings.to_bytes(8, "little")
    return head + body[HEAD_BYTES : HEAD_BYTES + len("a") + settings]


def test_a_journal_may_have_had_more_queues_than_there_can_be(vhost: str, tmp_path: Path) -> None:
    body = declaration(tmp_path / "one", vhost)
    folder = tmp_path / "many"
    folder.mkdir()
    with Journal(folder) as journal:
        for number in range(1, QUEUE_ROWS + 100):
            journal.stage(records.QUEUE, number, 0, body)
            journal.stage(records.QUEUE_GONE, number, 0, b"")
        journal.stage(records.QUEUE, number + 1, 0, body)
        journal.commit()
    with after_the_host_died(vhost, folder) as broker:
        assert names(broker) == ["a"]
        assert rings(vhost) == 1


def test_what_deleted_queues_had_is_room_for_others(vhost: str, tmp_path: Path) -> None:
    """Several times the arena went through queues that are gone, and the journal has all of it."""
    vhosts.delete(vhost)
    vhosts.create(vhost, arena_bytes=ARENA)
    large = bytes(ARENA // 8)
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, tmp_path, 1, 8 * ARENA),
    ):
        for number in range(4):
            queue = broker.declare_queue(f"gone {number}", durable=True, slots=16)
            for _ in range(6):
                queue.publish(large, timeout=PATIENCE)
            broker.delete_queue(queue.name, force=True)
        kept = broker.declare_queue("kept", durable=True, slots=16)
        for _ in range(2):
            kept.publish(large, timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, 2, arena_bytes=ARENA) as broker:
        assert names(broker) == ["kept"]
        queue = broker.declare_queue("next", slots=16)
        for _ in range(4):
            queue.publish(large, timeout=PATIENCE)
        assert [broker.queue("kept").receive(timeout=PATIENCE) for _ in range(2)] == [large, large]


def test_a_start_that_fails_leaves_no_rings(vhost: str, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    body = declaration(tmp_path / "one", vhost)
    folder.mkdir()
    with Journal(folder) as journal:
        for number in range(1, 20):
            journal.stage(records.QUEUE, number, 0, body)
        journal.stage(records.QUEUE, 20, 0, b"damaged")
        journal.commit()
    with (
        pytest.raises(shmbroker.Error, match="contradicts itself"),
        after_the_host_died(vhost, folder),
    ):
        pass
    assert rings(vhost) == 0


# --- what does not come back ----------------------------------------------------------------------


def test_a_queue_that_was_deleted_while_nobody_was_live(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        with journaling(vhost, tmp_path, 1):
            for name in ("kept", "gone"):
                broker.declare_queue(name, durable=True).publish(b"x", timeout=PATIENCE)
        broker.delete_queue("gone", force=True)
        with journaling(vhost, tmp_path, 2):
            broker.queue("kept").publish(b"y", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, 3) as broker:
        assert names(broker) == ["kept"]
        assert [broker.queue("kept").receive(timeout=PATIENCE) for _ in "xy"] == [b"x", b"y"]


def turn_over(journaler: Journaler, broker: Broker, times: int) -> None:
    """Fill segments with what nobody needs afterwards."""
    queue = broker.declare_queue("filling", durable=True)
    until = journaler.statistics().serial + times
    while journaler.statistics().serial < until:
        queue.publish(bytes(SMALL // 8), timeout=PATIENCE)
        queue.receive(timeout=PATIENCE)


def deleted_long_ago(vhost: str, folder: Path) -> None:
    """The segment that declares a queue is needed for another one's message; the one that says that
    it was deleted is not, and has gone."""
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, folder, 1, SMALL) as journaler,
    ):
        for name in ("kept", "gone"):
            broker.declare_queue(name, durable=True).publish(b"x", timeout=PATIENCE)
        turn_over(journaler, broker, 1)
        broker.delete_queue("gone", force=True)
        turn_over(journaler, broker, 5)
    with Replay(folder) as replay:
        kinds = [record.kind for record in replay]
    assert records.QUEUE_GONE not in kinds


def test_a_queue_that_was_deleted_long_ago(vhost: str, tmp_path: Path) -> None:
    deleted_long_ago(vhost, tmp_path)
    with after_the_host_died(vhost, tmp_path) as broker:
        assert names(broker) == ["filling", "kept"]
        assert broker.queue("kept").receive(timeout=PATIENCE) == b"x"


@pytest.mark.parametrize("way", ["compacted", "imported"])
def test_nor_after_a_journal_was_rewritten(way: str, vhost: str, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    deleted_long_ago(vhost, folder)
    if way == "compacted":
        compacted(folder, noted=pytest.fail, segment_bytes=SMALL)
    else:
        lines = list(exported(folder, noted=pytest.fail))
        folder = tmp_path / "copy"
        folder.mkdir()
        imported(folder, lines, segment_bytes=SMALL)
    with after_the_host_died(vhost, folder) as broker:
        assert names(broker) == ["filling", "kept"]
        assert broker.queue("kept").receive(timeout=PATIENCE) == b"x"


def test_segments_that_only_a_deleted_queue_needed_are_used_again(
    vhost: str, tmp_path: Path
) -> None:
    """Also if it was deleted while nobody was live to note it."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        with journaling(vhost, tmp_path, 1, SMALL):
            queue = broker.declare_queue("gone", durable=True)
            for _ in range(20):
                queue.publish(bytes(SMALL // 8), timeout=PATIENCE)
        broker.delete_queue("gone", force=True)
        with journaling(vhost, tmp_path, 2, SMALL) as journaler:
            turn_over(journaler, broker, 7)
            late = time.monotonic() + PATIENCE
            while journaler.statistics().segments >= 6:  # it is learnt beside
                assert time.monotonic() < late
                turn_over(journaler, broker, 1)
                time.sleep(0.01)
            assert journaler.statistics().live_bytes < SMALL


# --- one that is deleted between two looks --------------------------------------------------------

STOPS_AFTER_A_LOOK = """
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* It looks, says so, and answers when it is told to. */
static bool following_is_gone(const sb_queue *queue)
{
    const struct timespec pause = {0, 1000000};
    bool gone = queue_is_gone(queue);
    if (gone || strcmp(queue->name, "gone") != 0 || access("asks", F_OK) == 0)
        return gone;
    fclose(fopen("asks", "w"));
    while (access("answered", F_OK) != 0)
        nanosleep(&pause, NULL);
    return gone;
}
"""

DELETES_BETWEEN = """
import sys
from pathlib import Path
from time import monotonic, sleep
import shmbroker
from tests.support.host import PATIENCE, journaling

vhost, folder = sys.argv[1], Path(sys.argv[2])
with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, folder):
    broker.declare_queue("gone", durable=True).publish(b"x", timeout=PATIENCE)
    broker.declare_queue("kept", durable=True)
    end = monotonic() + PATIENCE
    while not Path("asks").exists():
        assert monotonic() < end
        sleep(0.001)
    broker.delete_queue("gone", force=True)
    Path("answered").touch()
    broker.queue("kept").publish(b"y", timeout=PATIENCE)
"""


def library_that_stops(target: Path) -> Path:
    """The library, whose journaler waits after it has looked whether a queue is gone."""
    file = "follower/following.c"
    text = (IPC / file).read_text()
    begin = text.index("static bool following_is_gone(")
    whole = text[begin : text.index("}\n", begin) + 2]
    return ChangedLibrary(target, all_sources()).made("stops", file, whole, STOPS_AFTER_A_LOOK)


def test_a_queue_that_is_deleted_while_the_journaler_looks(vhost: str, tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    environment = os.environ | {
        "LD_PRELOAD": str(library_that_stops(tmp_path / "native")),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", DELETES_BETWEEN, vhost, str(tmp_path / "journal")]
    subprocess.run(command, env=environment, cwd=tmp_path, timeout=60, check=True)
    with Replay(tmp_path / "journal") as replay:
        assert sum(record.kind == records.QUEUE_GONE for record in replay) == 1
    with after_the_host_died(vhost, tmp_path / "journal") as broker:
        assert names(broker) == ["kept"]
