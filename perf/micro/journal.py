"""python -m shmbroker.perf.micro.journal: what the journal costs beside the bare disk.

    one message ──► frame ──► pwrite, fdatasync        against   pwrite, fdatasync of the same bytes
    256 KiB of messages ──► frame ──► the same         against   256 KiB over a file again and again
    segments ──► replay ──► every record checked        against   nothing: MB/s

The bare loops overwrite a file that was written over before, as the journal does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.perf.machine.bare_file import FRAME_BYTES, BareFile
from shmbroker.perf.machine.machine import machine

SIZES = (64, 1024)
SEGMENT_BYTES = 64 << 20
HEAD_BYTES = 32
MIB = 1 << 20

COMMIT_RATIO_MAX = 1.5
STREAM_RATIO_MIN = 0.5
REPLAY_MB_MIN = 300


def timed_ns(action: Callable[[], object]) -> int:
    before = time.perf_counter_ns()
    action()
    return time.perf_counter_ns() - before


def commits(folder: Path, bare: BareFile, size: int, count: int) -> tuple[float, float]:
    """Medians in ns of one message at a time, journal and bare disk in turns."""
    body, ours, theirs = os.urandom(size), [], []
    with Journal(folder, segment_bytes=SEGMENT_BYTES) as journal:

        def commit(position: int) -> None:
            journal.message(1, position, body)
            journal.commit()

        for position in range(count):
            ours.append(timed_ns(lambda at=position: commit(at)))  # type: ignore[misc]
            theirs.append(timed_ns(lambda: bare.write(body)))
    return median(ours), median(theirs)


def stream(journal: Journal, size: int, seconds: float) -> tuple[float, int]:
    """Messages a second in frames of some 256 KiB, and how many; what is written is retired, so
    that segments are recycled."""
    batch = FRAME_BYTES // (size + HEAD_BYTES)
    bodies, lengths = os.urandom(size * batch), ffi.new("int64_t[]", [size] * batch)
    position, before = 0, time.perf_counter()
    while (spent := time.perf_counter() - before) < seconds:
        lib.sb_journal_stage_many(journal._journal, 1, position, bodies, lengths, batch)
        journal.commit()
        position += batch
        journal.retire(1, position)
    return position / spent, position


def replayed(folder: Path) -> tuple[float, int]:
    """Seconds to read all records, as they are restored, and how many bytes of bodies they have."""
    before = time.perf_counter()
    with Replay(folder) as replay:
        for _ in replay.batches():
            pass
        report = replay.report()
    spent = time.perf_counter() - before
    return spent, report.bytes - HEAD_BYTES * report.records


def fill(folder: Path, size: int, total: int) -> None:
    with Journal(folder, segment_bytes=SEGMENT_BYTES) as journal:
        batch = FRAME_BYTES // (size + HEAD_BYTES)
        bodies, lengths = os.urandom(size * batch), ffi.new("int64_t[]", [size] * batch)
        for position in range(0, total // size, batch):
            lib.sb_journal_stage_many(journal._journal, 1, position, bodies, lengths, batch)
            journal.commit()


def drop_caches(folder: Path) -> None:
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def verdict(good: bool) -> str:
    return "" if good else "  ← misses its target"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--backlog", type=int, default=256, help="MiB to read")
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="shmbroker-journal-", dir=given.folder))
    say = sys.stdout.write
    good = True
    try:
        described = machine([])
        say(f"{described['cpu']}, Linux {described['kernel']}; folder {work.parent}\n")
        bare = BareFile(work / "bare")
        for size in SIZES:
            folder = work / f"commit-{size}"
            folder.mkdir()
            ours, theirs = commits(folder, bare, size, given.commits)
            fine = ours <= COMMIT_RATIO_MAX * theirs
            good &= fine
            say(f"one message of {size:>5} B: {ours / 1e3:>6.0f} us; bare pwrite + fdatasync"
                f" {theirs / 1e3:>6.0f} us: {ours / theirs:.2f} x{verdict(fine)}\n")  # fmt: skip
        for size in SIZES:
            folder = work / f"stream-{size}"
            folder.mkdir()
            with Journal(folder, segment_bytes=SEGMENT_BYTES, spares=3) as journal:
                stream(journal, size, given.seconds)  # until segments go round
                rounds = [
                    (stream(journal, size, given.seconds / 4)[0],
                     bare.stream(given.seconds / 4))
                    for _ in range(4)
                ]  # fmt: skip
                waited = journal.statistics().waited
            ours, theirs = median(r[0] for r in rounds), median(r[1] for r in rounds)
            log, payload = ours * (size + HEAD_BYTES), ours * size
            fine = log >= STREAM_RATIO_MIN * theirs
            good &= fine
            say(f"frames of {size:>5} B: {ours:>10,.0f}/s, log {log / 1e6:>5.0f} MB/s"
                f" ({log / theirs:.0%}), payload {payload / 1e6:>5.0f} MB/s"
                f" ({payload / theirs:.0%}); bare 256 KiB {theirs / 1e6:>5.0f} MB/s;"
                f" waited {waited} times{verdict(fine)}\n")  # fmt: skip
        bare.close()
        for size in SIZES:
            folder = work / f"replay-{size}"
            folder.mkdir()
            fill(folder, size, given.backlog * MIB)
            warm = median(replayed(folder)[0] for _ in range(3))
            drop_caches(folder)
            cold, total = replayed(folder)
            fine = size < 1024 or total / cold / 1e6 >= REPLAY_MB_MIN
            good &= fine
            say(f"replay of {size:>5} B: {total / warm / 1e6:>6.0f} MB/s of payload from memory,"
                f" {total / cold / 1e6:>6.0f} MB/s from the disk{verdict(fine)}\n")  # fmt: skip
    finally:
        shutil.rmtree(work)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
