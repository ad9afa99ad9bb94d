"""A host whose broker writes a journal, and which dies.

"The host dies" is: the vhost's memory is deleted, in the middle of whatever goes on, and made anew
from the journal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.broker.journaler import Journaler, restore
from shmbroker.ipc.vhost import vhost as vhosts

SEGMENT = 1 << 20
PATIENCE = 60
"""Seconds, for what should be there at once: a disk that others use, too, may take ten of them."""


@contextmanager
def journaling(
    vhost: str,
    folder: Path,
    epoch: int = 1,
    segment: int = SEGMENT,
    beat: array[int] | None = None,
) -> Iterator[Journaler]:
    folder.mkdir(exist_ok=True)
    with (
        shmbroker.connect(f"shm://{vhost}", name="journal") as broker,
        Journaler(folder, segment_bytes=segment) as journaler,
    ):
        journaler.watched(-1, beat)
        journaler.start(broker, epoch)
        yield journaler


@contextmanager
def after_the_host_died(
    vhost: str,
    folder: Path,
    epoch: int = 2,
    segment: int = SEGMENT,
    arena_bytes: int = 64 << 20,
) -> Iterator[Broker]:
    vhosts.delete(vhost, force=True)
    vhosts.create(vhost, arena_bytes=arena_bytes)
    with (
        shmbroker.connect(f"shm://{vhost}", name="broker") as broker,
        Journaler(folder, segment_bytes=segment) as journaler,
    ):
        journaler.start(broker, epoch, restore(broker, folder))
        yield broker
