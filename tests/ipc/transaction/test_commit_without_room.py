"""A commit that finds no room in a queue any more is whole in every frame of the journal.

A real process stands still in the middle of its commit, and others fill up one of its queues.
Then its transaction is in the journal with messages that have no place yet.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import layout
from shmbroker.ipc.broker.applier import Applier
from shmbroker.ipc.broker.journaler import Journaler, begin_restoring, restore
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.end import End
from shmbroker.ipc.journal.export import compacted, exported, imported
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.ipc.transaction.test_commit_stopped import STRIDE, program
from tests.support.host import PATIENCE, journaling
from tests.support.tracer import Stepped

__all__ = ["program"]
SLOTS = 4


def declared(broker: shmbroker.Broker) -> dict[str, shmbroker.Queue]:
    slots = {"a": 1024, "b": SLOTS, "c": 1024, "other": 1024}
    return {
        name: broker.declare_queue(name, durable=True, slots=count, max_deliveries=None)
        for name, count in slots.items()
    }


def fill(queue: shmbroker.Queue) -> None:
    try:
        while True:
            queue.publish(b"other", timeout=0, confirm="shm")
    except shmbroker.QueueFull:
        pass


def drain(broker: shmbroker.Broker, name: str, wanted: int) -> list[bytes]:
    """Take what is there, until so many have come that are not there to fill it."""
    found: list[bytes] = []
    queue = broker.queue(name)
    while len(found) < wanted or queue.statistics().depth:
        body = queue.receive(timeout=PATIENCE)
        broker.repair()  # what had no room before
        found += [body] if body != b"other" else []
    return found


def verdict(broker: shmbroker.Broker, came: list[bytes]) -> bool:
    """True: all of it happened, and so much had come; False: nothing did."""
    broker.repair()
    happened = broker.queue("a").statistics().depth == 0
    found = came + drain(broker, "b", 2 - len(came) if happened else 0)
    assert found == ([b"1", b"2"] if happened else [])
    assert len(drain(broker, "c", int(happened))) == happened
    if not happened:
        assert broker.queue("a").receive(timeout=PATIENCE) == b"coin"
    return happened


@contextmanager
def restored(folder: Path) -> Iterator[shmbroker.Broker]:
    with vhost_for_a_while() as name:
        vhosts.create(name, arena_bytes=16 << 20)
        with (
            shmbroker.connect(f"shm://{name}", name="broker") as broker,
            Journaler(folder, segment_bytes=1 << 20) as journaler,
        ):
            journaler.start(broker, 9, restore(broker, folder))
            yield broker


def begun(vhost: str) -> int:
    """How many transactions on durable queues were decided and counted."""
    with Path(f"/dev/shm/shmbroker.{vhost}.transactions").open("rb") as file:
        file.seek(layout.TRANSACTIONS_BEGUN_AT)
        return int.from_bytes(file.read(8), "little")


def step_until_it_is_decided(commit: Stepped, vhost: str) -> None:
    while begun(vhost) == 0:
        assert commit.step(20), "it had happened before"


def unplaced_in(folder: Path) -> int:
    with Replay(folder) as replay:
        return len({each.position for each in replay if each.kind == records.UNPLACED})


class Frames:
    """What the journal has said so far."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.came: dict[str, set[int]] = {"b": set(), "c": set()}
        self.unplaced: set[int] = set()
        self.done: set[int] = set()

    def note(self, record: shmbroker.ipc.journal.replay.Record) -> None:  # type: ignore[name-defined]
        if record.kind == records.QUEUE:
            length = int.from_bytes(record.body[56:64], "little")
            self.names[record.queue] = record.body[72 : 72 + length].decode()
        if record.kind == records.QUEUES:
            self.unplaced.clear()
        if record.kind == records.UNPLACED:
            self.unplaced.discard(record.position)
            self.unplaced |= {record.position} if record.body else set()
        name = self.names.get(record.queue, "")
        if record.kind == records.MESSAGE and name in self.came:
            if not record.body.endswith(b"other"):
                self.came[name].add(record.position)
        if record.kind in (records.RETIRED, records.QUEUE) and name == "a":
            self.done |= {*range(record.position)}
        if record.kind == records.RETIRED and name == "a":
            bits = int.from_bytes(record.body, "little")
            above = (bit for bit in range(8 * len(record.body)) if bits >> bit & 1)
            self.done |= {record.position + bit for bit in above}

    def check(self, taken: set[int]) -> None:
        count = len(self.done - taken)
        published = len(self.came["b"]) + len(self.unplaced), len(self.came["c"])
        assert published == (2 * count, count)


def check_every_frame(folder: Path, taken: set[int]) -> None:
    """All of each transaction or nothing; these coins were taken by nobody's transaction."""
    frames = Frames()
    with Replay(folder) as replay:
        for record in replay:
            frames.note(record)
            if record.last:
                frames.check(taken)


@pytest.mark.parametrize("ends", ["killed", "continued"])
def test_one_that_finds_no_room_is_whole_in_the_journal(
    program: Path, vhost: str, tmp_path: Path, ends: str
) -> None:
    journal, copy = tmp_path / "journal", tmp_path / "copy"
    taken, happened = set[int](), list[bool]()
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, journal, 1, 8 << 20):
        queues = declared(broker)
        instructions = 1  # nothing has happened there, nor can it
        stands = True
        while stands:
            came: list[bytes] = []
            coin = queues["a"].publish(b"coin", timeout=PATIENCE)
            with Stepped([str(program), vhost]) as commit:
                stands = commit.step(instructions)
                fill(queues["b"])
                queues["other"].publish(b"", timeout=PATIENCE)
                shutil.copytree(journal, copy, ignore=shutil.ignore_patterns("*.spare"))
                if ends == "continued" and stands:
                    commit.run_to_stop()
                    came = drain(broker, "b", 0)
                    commit.finish()
            happened.append(verdict(broker, came))
            if not happened[-1]:
                taken.add(coin)
            with restored(copy) as after:
                verdict(after, [])
            shutil.rmtree(copy)
            instructions += random.randrange(STRIDE, 3 * STRIDE)
    assert {True, False} == set(happened)
    check_every_frame(journal, taken)


def check_a_crash_now(journal: Path, folder: Path) -> None:
    """All of it is in the journal, and in what tools make of it."""
    again = shutil.copytree(journal, folder)
    with restored(again) as after:
        assert verdict(after, [])
    shutil.rmtree(folder)


def emptied(broker: shmbroker.Broker, name: str) -> list[bytes]:
    found: list[bytes] = []
    while True:
        broker.repair()
        if broker.queue(name).statistics().depth == 0:
            return found
        body = broker.queue(name).receive(timeout=PATIENCE)
        found += [body] if body != b"other" else []


@contextmanager
def decided(program: Path, vhost: str, journal: Path) -> Iterator[tuple[shmbroker.Broker, Stepped]]:
    """A commit that stands still after its decision, and one of its queues is full."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queues = declared(broker)
        with journaling(vhost, journal):
            queues["a"].publish(b"coin", timeout=PATIENCE)
            queues["other"].publish(b"", timeout=PATIENCE)  # so that this segment stays
        with Stepped([str(program), vhost]) as commit:
            step_until_it_is_decided(commit, vhost)
            fill(queues["b"])
            yield broker, commit


def test_it_outlives_segments_and_journalers(program: Path, vhost: str, tmp_path: Path) -> None:
    journal, copy = tmp_path / "journal", tmp_path / "copy"
    with decided(program, vhost, journal) as (broker, commit):
        other = broker.queue("other")
        with journaling(vhost, journal, 2, 64 << 10) as journaler:
            other.publish(b"", timeout=PATIENCE)
            first = journaler.statistics().serial
            while journaler.statistics().serial < first + 3:
                other.publish(bytes(16 << 10), timeout=PATIENCE)
                other.receive(timeout=PATIENCE)
        check_a_crash_now(journal, copy)
        with journaling(vhost, journal, 3):
            other.publish(b"", timeout=PATIENCE)
        check_a_crash_now(journal, copy)
        with journaling(vhost, journal, 4):
            commit.kill()
            assert verdict(broker, [])
            other.publish(b"", timeout=PATIENCE)
    with restored(journal) as after:
        assert [after.queue(name).statistics().depth for name in "abc"] == [0, 0, 0]


def test_tools_keep_what_has_no_place(program: Path, vhost: str, tmp_path: Path) -> None:
    journal, imports = tmp_path / "journal", tmp_path / "imported"
    with decided(program, vhost, journal) as (broker, _), journaling(vhost, journal, 2):
        broker.queue("other").publish(b"", timeout=PATIENCE)
    assert unplaced_in(journal) == 2
    imports.mkdir()
    imported(imports, exported(journal, print))
    compacted(journal, print)
    for folder in (journal, imports):
        assert unplaced_in(folder) == 2
        with restored(folder) as after:
            assert verdict(after, [])


def test_a_crash_after_any_frame(program: Path, vhost: str, tmp_path: Path) -> None:
    """Its owner stands still all the time: the journaler goes on as soon as there is room."""
    journal = tmp_path / "journal"
    with decided(program, vhost, journal) as (broker, _), journaling(vhost, journal, 2):
        broker.queue("other").publish(b"", timeout=PATIENCE)
        assert drain(broker, "b", 2) == [b"1", b"2"]
        broker.queue("other").publish(b"", timeout=PATIENCE)
    check_every_frame(journal, set())
    lines, seen = list(exported(journal, print)), list[tuple[int, ...]]()
    for count, line in enumerate(lines, start=1):
        folder = tmp_path / str(count)
        if json.loads(line)["last"]:
            folder.mkdir()
            imported(folder, lines[:count])
            with restored(folder) as after, suppress(shmbroker.NotFound):
                coins = after.queue("a").statistics().depth
                seen.append((coins, len(emptied(after, "b")), len(emptied(after, "c"))))
    assert seen == sorted(seen, key=[(0, 0, 0), (1, 0, 0), (0, 2, 1), (0, 1, 1), (0, 0, 1)].index)
    assert {(1, 0, 0), (0, 2, 1)} <= set(seen)


def test_a_replica_has_it_whole(program: Path, vhost: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with decided(program, vhost, journal) as (broker, _), ExitStack() as stack:
        journaler = stack.enter_context(Journaler(journal))
        end = stack.enter_context(End(journaler, "replica", timeout=PATIENCE, counts=False))
        journaler.start(broker, 2)
        broker.queue("other").publish(b"", timeout=PATIENCE)
        name = stack.enter_context(vhost_for_a_while())
        made = stack.enter_context(begin_restoring(name, name="replica", arena_bytes=16 << 20))
        applier = stack.enter_context(Applier(made))
        while frame := end.read():
            applier.apply(frame)
        applier.finish()
        (tmp_path / "replica").mkdir()
        with journaling(name, tmp_path / "replica"):
            replica = stack.enter_context(shmbroker.connect(f"shm://{name}"))
            assert verdict(replica, [])


def test_in_a_queue_that_drops_the_oldest_it_needs_nobody(
    program: Path, vhost: str, tmp_path: Path
) -> None:
    """Others have its room when it is decided, and nobody takes anything any more."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        a, c = (broker.declare_queue(name, durable=True) for name in "ac")
        b = broker.declare_queue("b", slots=SLOTS, when_full="drop-oldest")
        with journaling(vhost, tmp_path):
            a.publish(b"coin", timeout=PATIENCE)
            with Stepped([str(program), vhost]) as commit:
                step_until_it_is_decided(commit, vhost)
                for _ in range(SLOTS):
                    b.publish(b"other")
                commit.run_to_stop()
                came = [b.receive(timeout=PATIENCE) for _ in range(SLOTS)]
                assert came == [b"other", b"other", b"1", b"2"]
                assert commit.finish() == 0
            assert [each.statistics().depth for each in (a, c)] == [0, 1]
