"""A journaler that holds: what was there when it was told is written, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import shmbroker
from shmbroker.ipc.base.errors import DiskFull
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.end import End
from shmbroker.ipc.journal.replay import Replay
from tests.ipc.broker.test_ends import NEVER, fills
from tests.support.host import PATIENCE, journaling
from tests.support.small_disk import empty, fill, small_disk

DISK = 20 << 20
NAP = 0.02
MANY, LARGE = 400, bytes(8000)
"""Of several frames."""


def written(folder: Path) -> list[bytes]:
    with Replay(folder) as replay:
        return [each.body for each in replay if each.kind == records.MESSAGE]


def is_held(journaler: Journaler) -> bool:
    return journaler.told().holds


def waits_for_room(journaler: Journaler) -> bool:
    return isinstance(journaler.failure, DiskFull)


def goes_on_until(journaler: Journaler, end: End, so: Callable[[Journaler], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not so(journaler):
        assert time.monotonic() < until
        if (frame := end.read(NAP)) is not None:
            end.done(frame.number)


def test_all_is_written_that_was_there_however_many_frames(tmp_path: Path, vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, tmp_path) as journaler,
        End(journaler, "b", timeout=NEVER, bytes_max=0) as end,
    ):
        queue = broker.declare_queue("orders", durable=True)
        frame = fills(end, queue, b"one")  # nothing is written until it has it
        queue.publish_many([LARGE] * MANY, confirm="shm")
        journaler.hold(True)
        end.done(frame.number)
        goes_on_until(journaler, end, is_held)
        queue.publish(b"later", confirm="shm")
        bodies = written(tmp_path)
        assert sum(each.endswith(LARGE) for each in bodies) == MANY
        assert not any(each.endswith(b"later") for each in bodies)


def test_a_turn_of_the_hold_before_does_not_answer_for_the_one_after(
    tmp_path: Path, vhost: str
) -> None:
    """It waits for room on the disk, and does not see what has come meanwhile."""
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, disk / "journal") as journaler,
        End(journaler, "b", timeout=NEVER, bytes_max=0) as end,
    ):
        queue = broker.declare_queue("orders", durable=True)
        frame = fills(end, queue, b"one")  # nothing is written until it has it
        fill(disk)
        queue.publish(bytes(4 << 20), confirm="shm")
        journaler.hold(True)
        end.done(frame.number)
        goes_on_until(journaler, end, waits_for_room)
        queue.publish(b"late", confirm="shm")
        journaler.hold(False)
        journaler.hold(True)
        assert not journaler.told().holds
        empty(disk)
        goes_on_until(journaler, end, is_held)
        queue.publish(b"later", confirm="shm")
        bodies = written(disk / "journal")
        assert any(each.endswith(b"late") for each in bodies)
        assert not any(each.endswith(b"later") for each in bodies)
        assert journaler.told().holds
