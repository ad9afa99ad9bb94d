"""Who writes a journal is killed with -9 at random moments; the next one begins where it was."""

from __future__ import annotations

import os
import random
import select
from pathlib import Path

import pytest

from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.perf.machine.process import Process
from tests.support.killed import KILLS, LATEST_SECONDS

SEGMENT_BYTES = 64 << 10
QUEUE = 1
WINDOW = 40
"""Messages that are not retired yet."""


def body_of(position: int) -> bytes:
    return b"%d " % position * (position % 97)


def write(folder: Path, epoch: int, confirmed: int, adopt: bool) -> int:
    """Go on behind what is there, and tell of each commit."""
    journal = Journal(folder, epoch=None, segment_bytes=SEGMENT_BYTES)
    head, tail = 0, 0
    with Replay(folder) as replay:
        for record in replay:
            if record.kind == records.MESSAGE:
                tail = max(tail, record.position + 1)
            elif record.kind == records.RETIRED:
                head = max(head, record.position)
        journal.begin(epoch, replay if adopt else None)
    while True:
        for position in range(tail, tail + 1 + tail % 5):
            journal.message(QUEUE, position, body_of(position))
            tail = position + 1
        head = max(head, tail - WINDOW)
        journal.stage(records.RETIRED, QUEUE, head)
        journal.commit()
        os.write(confirmed, b"%20d" % tail)
        journal.retire(QUEUE, head)
        if tail % 7 == 0:
            journal.clear()


def read(folder: Path) -> tuple[int, dict[int, bytes]]:
    head, messages = 0, {}
    with Replay(folder) as replay:
        for record in replay:
            if record.kind == records.RETIRED:
                head = max(head, record.position)
            elif record.kind == records.MESSAGE:
                messages[record.position] = record.body
    return head, messages


def test_no_confirmed_message_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    folder, moments, tail = tmp_path / "journal", random.Random(7), 0
    folder.mkdir()
    for number in range(KILLS):
        told, tell = os.pipe()
        process = Process(
            lambda n=number, to=tell: write(folder, n, to, n % 2 == 0),  # type: ignore[misc]
            tmp_path / "errors",
        )
        os.close(tell)
        if number % 3:  # the others may be killed while they begin
            tail = int(os.read(told, 20) or process.errors.read_text())
        select.select([], [], [], moments.uniform(0, LATEST_SECONDS))
        process.kill()
        while confirmed := os.read(told, 20):
            tail = int(confirmed)
        os.close(told)
        head, messages = read(folder)
        assert head >= tail - WINDOW
        live = {position for position in messages if position >= head}
        assert live >= set(range(head, tail)), f"kill {number}"
        assert live == set(range(head, max(live, default=head - 1) + 1)), "a hole, or half a commit"
        assert all(messages[position] == body_of(position) for position in live)
    assert tail > KILLS
    assert len(list(folder.glob("*.journal"))) < KILLS, "what is not needed is let go of"
    Journal(folder, epoch=KILLS, segment_bytes=SEGMENT_BYTES).close()
    assert not list(folder.glob("*.spare"))


@pytest.mark.parametrize("adopt", [True, False])
def test_what_the_dead_had_ready_is_removed(tmp_path: Path, adopt: bool) -> None:
    """A spare of one that was killed, and one of a backup that lives."""
    (tmp_path / "0123456789abcdef.spare").write_bytes(b"left")
    with Journal(tmp_path, epoch=None, segment_bytes=SEGMENT_BYTES) as backup:
        backup.wait()
        with Replay(tmp_path) as replay:
            assert list(replay) == []
            live = Journal(tmp_path, epoch=None, segment_bytes=SEGMENT_BYTES)
            live.begin(1, replay if adopt else None)
        live.wait()
        assert not (tmp_path / "0123456789abcdef.spare").exists()
        backup.begin(2)
        backup.message(QUEUE, 0, b"")
        backup.commit()
        live.close()
