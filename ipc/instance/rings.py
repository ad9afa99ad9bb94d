"""The rings that a new live begins with: those in /dev/shm, or new ones from the journal.

Those that are there are the right ones if the last live had just them: then all that was published
is in them, also what is not in the journal.  Otherwise another host, or another boot, was there in
between, and what stands here is of the past.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shmbroker.core.layout import (
    CATALOG_ARENA_AT,
    CATALOG_BOOT_AT,
    CATALOG_MOVED_AT,
    CATALOG_NAME_AT,
    CATALOG_RESTORING_AT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.broker.journaler import (
    Restored,
    attach,
    begin_restoring,
    join,
    restore,
)
from shmbroker.ipc.broker.restoring import Progress
from shmbroker.ipc.connection.broker import Broker, connect
from shmbroker.ipc.doctor.stale import boot_hash
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.lock.record import Record
from shmbroker.ipc.instance.store import journal_of
from shmbroker.ipc.vhost import vhost as vhosts

NAME_BYTES_MAX = 56
"""Of a participant."""


class ForeignRings(Error):
    """The vhost that is there is not what the store was written from."""


@dataclass(frozen=True, slots=True)
class Rings:
    """What /dev/shm has of a vhost."""

    identity: int = 0
    """0: nothing, or something of before the machine was started."""
    is_whole: bool = False
    """Not half restored."""
    is_moved: bool = False
    """Its queues are out of reach: its broker gave them away, or was killed meanwhile."""


class Attached:
    """The rings of who is live now, as a backup looks at them to be quick later.

    It takes no part: nobody sees it, and no queue and no vhost is in use by it.
    """

    def __init__(self, vhost: str) -> None:
        self.broker = attach(vhost)
        self.identity = identity_of(self.broker)

    def joined(self, name: str) -> Broker:
        """Part of it from now on; NotFound if they were deleted meanwhile, or are not whole."""
        join(self.broker, name)
        return self.broker

    def close(self) -> None:
        self.broker.close()


def identity_of(broker: Broker) -> int:
    head = ffi.buffer(lib.sb_catalog(broker._connection), CATALOG_NAME_AT)
    identity: int = struct.unpack_from("q", head, CATALOG_ARENA_AT)[0]
    return identity


def found(vhost: str) -> Rings:
    """Untrusted if another user has made it, or others may write it."""
    try:
        begin, whose = vhosts.home(vhost)
        with os.fdopen(trust.opened(Path(f"{begin}catalog"), os.O_RDONLY, whose), "rb") as file:
            head = file.read(CATALOG_MOVED_AT + 8)
    except FileNotFoundError:
        return Rings()
    if len(head) < CATALOG_MOVED_AT + 8:
        return Rings()
    words = struct.unpack(f"{len(head) // 8}q", head)
    if words[CATALOG_BOOT_AT // 8] != boot_hash():
        return Rings()
    return Rings(
        words[CATALOG_ARENA_AT // 8],
        words[CATALOG_RESTORING_AT // 8] == 0,
        words[CATALOG_MOVED_AT // 8] != 0,
    )


def current(vhost: str, record: Record) -> int:
    """The identity of the rings that are there if they are to be gone on with, else 0."""
    there = found(vhost)
    is_first = record.epoch == 0  # whoever made them wants them to be durable from now on
    is_ours = is_first or there.identity == record.rings
    return there.identity if is_ours and there.is_whole else 0


def participant_name(config: Config) -> str:
    name = f"broker {config.name}".encode()[:NAME_BYTES_MAX]
    return name.decode(errors="ignore")


def attached(config: Config) -> Broker:
    return connect(f"shm://{config.vhost}", name=participant_name(config))


def refuse_others(config: Config, former: int) -> None:
    """ForeignRings if what is there may be somebody's."""
    there = found(config.vhost)
    is_of_the_past = not there.is_whole or there.identity == former
    if not is_of_the_past and has_queues(config.vhost):
        raise ForeignRings(
            f"vhost {config.vhost!r} exists and is not the one that store {config.store} was "
            "written from: look whether somebody needs what is in it, then delete it by "
            f"shmbroker vhost delete {config.vhost}, and it is restored from the journal"
        )


def make_way(config: Config, former: int) -> None:
    """Remove what is of the past, and tell who is in it; ForeignRings if it may be somebody's."""
    refuse_others(config, former)
    if vhosts.exists(config.vhost):
        vhosts.retire(config.vhost)


def has_queues(vhost: str) -> bool:
    with connect(f"shm://{vhost}", observe=True) as broker:
        return bool(broker._catalog.queue_names())


def restored(
    config: Config, former: int, begun: Callable[[int], object], progress: Progress | None
) -> tuple[Broker, Restored]:
    """New rings, filled from the journal; `begun` is told their identity before."""
    make_way(config, former)
    broker = begin_restoring(
        config.vhost,
        name=participant_name(config),
        arena_bytes=config.arena,
        group=config.group,
    )
    try:
        begun(found(config.vhost).identity)
        return broker, restore(broker, journal_of(config), progress)
    except Error:
        broker.close()
        raise
