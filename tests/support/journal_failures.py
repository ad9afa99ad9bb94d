"""Calls that fail under a journal at work: with native/storage.c preloaded.

python -m tests.support.journal_failures PART FOLDER
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import shmbroker
from shmbroker import Empty, Queue, Unconfirmed
from shmbroker.ipc.base.errors import DiskFull, JournalDamaged, JournalFailed
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.vhost import vhost as vhosts
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.journal_mutants import without_guard
from tests.support.refused import refused
from tests.support.storage import (
    FALLOCATE,
    FDATASYNC,
    FSYNC,
    LINKAT,
    OPENAT,
    PWRITE,
    RENAMEAT,
    UNLINKAT,
)

SEGMENT_BYTES = 32 << 10
BODY = b"x" * 1000
FRAME = 14
"""Messages: two such frames have room in a segment, and three have not."""
ALL_CALLS = -1
HOUR = 3600.0

shim = ctypes.CDLL(None)


def fail(call: int, error: int, *, after: int = 0, times: int = 1) -> None:
    shim.storage_fail(call, ctypes.c_int64(after), ctypes.c_int64(times), error)


def room(count: int) -> None:
    shim.storage_room(ctypes.c_int64(count))


def positions(folder: Path, *, salvage: bool = False) -> list[int]:
    with Replay(folder, salvage=salvage) as replay:
        return [record.position for record in replay if record.kind == records.MESSAGE]


def sync(folder: Path) -> None:
    """The first sync that fails is the last: what it was about may be gone, and nothing follows."""
    with Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        journal.message(1, 0, BODY)
        journal.commit()
        journal.wait()
        for call in (FDATASYNC, PWRITE):
            fail(call, errno.EIO, times=0)
        fail(FDATASYNC, errno.EIO)
        journal.message(1, 1, BODY)
        for _ in range(2):
            with refused(JournalFailed, match="Input/output error"):
                journal.commit()
        with refused(JournalFailed, match="Input/output error"):
            journal.message(1, 2, BODY)
        with refused(JournalFailed):
            journal.clear()
    assert positions(folder)[0] == 0
    with Journal(folder, epoch=2, segment_bytes=SEGMENT_BYTES) as journal:
        journal.wait()  # else it may be a write of its thread that fails, to a spare segment
        fail(PWRITE, errno.EIO)
        journal.message(1, 5, BODY)
        with refused(JournalFailed, match="Input/output error"):
            journal.commit()


def fill(journal: Journal, position: int, count: int = 1000) -> int:
    """Commit until that fails; the position of what is staged and not confirmed."""
    for _ in range(count):
        journal.message(1, position, BODY)
        journal.commit()
        position += 1
    raise AssertionError("it never became full")


def full(folder: Path) -> None:
    """Nothing is lost when the disk is full, nothing is confirmed, and it goes on."""
    with Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        room(5 * SEGMENT_BYTES + 1000)
        with refused(DiskFull):
            fill(journal, 0)
        unconfirmed = max(positions(folder)) + 1
        with refused(DiskFull):
            journal.commit()
        journal.message(1, unconfirmed + 1, BODY)
        with refused(DiskFull):
            journal.commit()
        assert positions(folder) == list(range(unconfirmed))
        room(3 * SEGMENT_BYTES)
        journal.commit()
        assert positions(folder) == list(range(unconfirmed + 2))
        room(0)
        with refused(DiskFull):
            fill(journal, unconfirmed + 2)
        room(1 << 30)
        journal.stage(records.RETIRED, 1, 7)
        journal.commit()
        journal.wait()
    assert not list(folder.glob("*.spare")), "what did not fit is removed"
    count = len(positions(folder))
    assert positions(folder) == list(range(count))


def retired_room(folder: Path) -> None:
    """On a full disk, what is retired makes room, without a byte more."""
    with Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        room(5 * SEGMENT_BYTES)
        with refused(DiskFull):
            fill(journal, 0)
        tail = max(positions(folder)) + 1
        journal.retire(1, tail)
        journal.commit()
        for _ in range(10):
            tail += 1
            journal.message(1, tail, BODY)
            journal.commit()
            journal.retire(1, tail)
        assert journal.statistics().recycled > 0
        assert positions(folder)[-1] == tail


def ahead(folder: Path) -> None:
    """What is written ahead is there once its frame is committed, and once, wherever that goes."""
    with Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        stage_ahead(journal, 0)
        assert positions(folder) == []
        journal.commit()
        stage_ahead(journal, FRAME)  # for the next segment, as this one has no room for all of it
        stage_ahead(journal, 2 * FRAME)
        journal.commit()
        assert positions(folder) == list(range(3 * FRAME))
        tail, first = 3 * FRAME, journal.statistics().serial
        while journal.statistics().serial == first:
            journal.message(1, tail, BODY)
            journal.commit()
            tail += 1
        stage_ahead(journal, tail)
        journal.retire(1, tail)
        assert journal.clear() > 0  # its list comes where the frame was to be
        assert positions(folder, salvage=True)[-1] == tail - 1
        journal.commit()
        tail += FRAME
        assert positions(folder)[-1] == tail - 1
        journal.wait()
        fail(PWRITE, errno.EIO)
        with refused(JournalFailed, match="Input/output error"):
            stage_ahead(journal, tail)
        with refused(JournalFailed, match="Input/output error"):
            journal.commit()
    assert positions(folder)[-1] == tail - 1


def stage_ahead(journal: Journal, position: int, count: int = FRAME) -> None:
    for each in range(count):
        journal.message(1, position + each, BODY)
        journal.ahead()


def read_only(folder: Path) -> None:
    """The disk was remounted read-only: a clear error, and what was confirmed is there."""
    journal = Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES)
    journal.message(1, 0, BODY)
    journal.commit()
    for call in (OPENAT, PWRITE, LINKAT, UNLINKAT, RENAMEAT):
        fail(call, errno.EROFS, times=ALL_CALLS)
    journal.message(1, 1, BODY)
    with refused(JournalFailed, match="Read-only file system"):
        journal.commit()
    journal.close()
    assert positions(folder) == [0]
    with refused(JournalFailed, match="Read-only file system"):
        Journal(folder, epoch=2, segment_bytes=SEGMENT_BYTES)
    assert positions(folder) == [0]


def takeover(folder: Path) -> None:
    """Another begins while we are stopped: it writes behind us, and we never begin again."""
    ours = Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES)
    ours.message(1, 0, BODY)
    ours.commit()
    ours.wait()
    theirs = Journal(folder, epoch=2, segment_bytes=SEGMENT_BYTES)
    theirs.message(1, 1, BODY)
    theirs.commit()
    theirs.wait()
    with refused(JournalFailed, match="epoch 2"):
        Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES)
    written = 2
    with refused(JournalFailed, match="another has begun"):
        while written < 200:
            ours.message(2, written, BODY)
            ours.commit()
            written += 1
    theirs.message(1, 2, BODY)
    theirs.commit()
    assert {0, 1, 2} <= set(positions(folder))
    with Replay(folder) as replay:
        messages = [r for r in replay if r.kind == records.MESSAGE]
    assert [r.position for r in messages if r.queue == 1] == [0, 1, 2]
    ours.close()
    theirs.close()


def begun_twice(folder: Path) -> list[Path]:
    """A journal of three segments, as it is before somebody begins behind it."""
    for path in folder.iterdir():
        path.unlink()
    with Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES, node=b"a" * 16) as journal:
        for position in range(3 * 2 * FRAME):
            journal.message(1, position, BODY)
            journal.commit()
        journal.wait()
    return sorted(folder.glob("*.journal"))


def begin_again(folder: Path, epoch: int) -> None:
    """One that has read nothing, and dies before it has."""
    with Journal(folder, epoch=epoch, segment_bytes=SEGMENT_BYTES, node=b"a" * 16) as journal:
        journal.message(1, 10_000 + epoch, BODY)
        journal.commit()


def is_refused(folder: Path, name: str) -> None:
    with refused(JournalDamaged, match=name):
        positions(folder)


def cut_in_half(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(SEGMENT_BYTES // 4)
        file.write(bytes(SEGMENT_BYTES * 3 // 4))


def inheriting(folder: Path) -> None:
    """What is damaged stays damaged, however many begin behind it."""
    for which in (0, -1):
        for harm in (Path.unlink, cut_in_half):
            hit = begun_twice(folder)[which]
            harm(hit)
            is_refused(folder, hit.name)
            for epoch in (2, 3):
                begin_again(folder, epoch)
                is_refused(folder, hit.name)
    other = folder.with_name("other")
    other.mkdir()
    hit = begun_twice(folder)[-1]
    (other / f"{int(hit.stem, 16) - 1:016x}.journal").touch()
    with Journal(other, epoch=1, segment_bytes=SEGMENT_BYTES, node=b"b" * 16) as journal:
        for position in range(2 * FRAME):  # as far as the other one was written, and further
            journal.message(1, position, BODY)
            journal.commit()
        hit.write_bytes((other / hit.name).read_bytes())
    begin_again(folder, 2)
    is_refused(folder, hit.name)


def compacting(folder: Path) -> None:
    """What is moved is there until its copy is committed; what cannot be read is not let go of."""
    kept = {position for position in range(100) if position % 2 == 0}
    with Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        for position in range(100):
            journal.message(1 + position % 2, position, BODY)
            journal.commit()
        journal.retire(2)
        damage_one(folder)
        for _ in range(20):
            journal.compact(60, 50_000)
            journal.clear()
            journal.wait()
            with Replay(folder, salvage=True) as replay:
                assert len(kept - {record.position for record in replay}) <= 1
            journal.commit()
        journal.clear()
        journal.wait()
        assert journal.statistics().damaged == 1
        assert journal.statistics().segments < 7
        damage_one(folder)
    assert kept <= set(positions(folder))


def damage_one(folder: Path) -> None:
    """Flip a bit; twice, and it is as it was."""
    first = folder / "0000000000000001.journal"
    data = bytearray(first.read_bytes())
    data[9000] ^= 1
    first.write_bytes(data)


def scheduled(folder: Path) -> None:
    """On a full disk nothing that is scheduled is confirmed, or moved; then it goes on."""
    vhost = f"test-{os.getpid()}-full"
    vhosts.create(vhost, arena_bytes=64 << 20)
    confirmed = 0
    try:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            jobs = broker.declare_queue("jobs", durable=True)
            with journaling(vhost, folder, 1, SEGMENT_BYTES):
                jobs.publish(BODY, deliver_after=HOUR)
                room(2 * SEGMENT_BYTES)
                with refused(Unconfirmed):
                    while confirmed < 1000:
                        jobs.publish(BODY, deliver_after=HOUR, timeout=0.2)
                        confirmed += 1
                jobs.publish(b"due", deliver_after=1e-9, confirm="shm")
                with refused(Empty):
                    jobs.get(timeout=0.1)
                assert jobs.statistics().depth == 0
                assert jobs.statistics().scheduled == confirmed + 3
                room(1 << 30)
                jobs.confirm(timeout=PATIENCE)
                assert jobs.receive(timeout=PATIENCE) == b"due"
        with after_the_host_died(vhost, folder) as broker:
            assert broker.queue("jobs").statistics().scheduled == confirmed + 2
    finally:
        vhosts.delete(vhost, force=True)


CALLS = {
    "openat": OPENAT,
    "pwrite": PWRITE,
    "fallocate": FALLOCATE,
    "fsync": FSYNC,
    "linkat": LINKAT,
    "unlinkat": UNLINKAT,
    "renameat": RENAMEAT,
}
AFTER = (0, 1, 4)
"""So many calls are well before."""
MESSAGES = 120


def each_call(folder: Path) -> None:
    """No room at any call: the journaler waits, and goes on by itself.  An error of the disk may
    end it, and then it says why.  Either way what was confirmed is there."""
    number = 0
    for name, call in CALLS.items():
        for after in AFTER:
            number += 1
            # which of those that say that there is no room does not matter: they take turns
            full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)[number % 3]
            for error in (full, errno.EIO):
                one = folder / f"{name}-{error}-{after}"
                one.mkdir()
                try:
                    fails_at(one, call, error, after)
                except BaseException as failure:
                    failure.add_note(f"{errno.errorcode[error]} at call {after} of {name}")
                    raise


def has_confirmed(queue: Queue, journaler: Journaler) -> bool:
    """False if the journaler has ended, and says why."""
    ends_at = time.monotonic() + PATIENCE
    while time.monotonic() < ends_at:
        with suppress(Unconfirmed):
            queue.confirm(timeout=0.05)
            return True
        if isinstance(journaler.failure, JournalFailed):
            return False
    raise AssertionError(f"nothing is confirmed, and it says {journaler.failure}")


def fails_at(folder: Path, call: int, error: int, after: int) -> None:
    vhost = f"test-{os.getpid()}-call"
    vhosts.create(vhost, arena_bytes=16 << 20)
    confirmed = taken = 0
    try:
        with (
            shmbroker.connect(f"shm://{vhost}") as broker,
            journaling(vhost, folder, 1, SEGMENT_BYTES) as journaler,
        ):
            jobs = broker.declare_queue("jobs", durable=True)
            fail(call, error, after=after, times=2)
            while confirmed < MESSAGES:
                jobs.publish(b"%d" % confirmed + BODY, confirm="shm")
                if not has_confirmed(jobs, journaler):
                    break
                confirmed += 1
                if confirmed % 2:
                    taken += bool(jobs.receive(timeout=PATIENCE))
            if error != errno.EIO:
                assert confirmed == MESSAGES, "a full disk ended it"
                assert journaler.failure is None, "it still waits"
        fail(call, error, times=0)
        with after_the_host_died(vhost, folder) as broker:
            # it may have ended before it had written that there is a queue
            left = broker.queue("jobs").browse() if confirmed else ()
            found = {int(each.body.partition(b"x")[0]) for each in left}
            assert found >= set(range(taken, confirmed)), "messages are lost"
    finally:
        fail(call, error, times=0)
        vhosts.delete(vhost, force=True)


def killed_while_naming(folder: Path) -> None:
    """A segment still has the name that it had before: that is no room for whoever finds none."""
    with Journal(folder, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        journal.message(1, 0, BODY)
        journal.commit()
        journal.wait()
    (folder / "0123456789abcdef.spare").hardlink_to(folder / "0000000000000001.journal")
    room(0)
    with refused(DiskFull):
        Journal(folder, epoch=2, segment_bytes=SEGMENT_BYTES)
    room(1 << 30)
    assert positions(folder) == [0]


PARTS: dict[str, Callable[[Path], None]] = {
    "sync": sync,
    "full": full,
    "room": retired_room,
    "read-only": read_only,
    "ahead": ahead,
    "takeover": takeover,
    "inheriting": inheriting,
    "compacting": compacting,
    "scheduled": scheduled,
    "each-call": each_call,
    "naming": killed_while_naming,
}

if __name__ == "__main__":
    with without_guard():
        PARTS[sys.argv[1]](Path(sys.argv[2]))
    print("well")  # noqa: T201
