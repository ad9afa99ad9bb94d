"""The rings that a new live begins with: those in /dev/shm, or new ones from the journal.

Those that are there are the right ones if the last live had just them: then all that was published
is in them, also what is not in the journal.  Otherwise another host, or another boot, was there in
between, and what stands here is of the past.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from shmbroker.core.layout import CATALOG_ARENA_AT, CATALOG_BOOT_AT
from shmbroker.ipc import vhost as vhosts
from shmbroker.ipc.broker import Broker, connect
from shmbroker.ipc.errors import Error
from shmbroker.ipc.instance.config import Config
from shmbroker.ipc.instance.record import Record
from shmbroker.ipc.journaler import Progress, Restored, restore
from shmbroker.ipc.stale import boot_hash


class ForeignRings(Error):
    """The vhost that is there is not what the store was written from."""


def identity_of(vhost: str) -> int:
    """Of the vhost that is there, since the machine was started; 0 if there is none."""
    try:
        with Path(f"/dev/shm/shmbroker.{vhost}.catalog").open("rb") as file:
            content = file.read(CATALOG_BOOT_AT + 8)
    except FileNotFoundError:
        return 0
    if len(content) < CATALOG_BOOT_AT + 8:
        return 0
    identity: int = struct.unpack_from("Q", content, CATALOG_ARENA_AT)[0]
    boot: int = struct.unpack_from("q", content, CATALOG_BOOT_AT)[0]
    return identity if boot == boot_hash() else 0


def current(vhost: str, record: Record) -> int:
    """The identity of the rings that are there if they are to be gone on with, else 0."""
    identity = identity_of(vhost)
    is_first = record.epoch == 0  # whoever made them wants them to be durable from now on
    return identity if identity and (is_first or identity == record.rings) else 0


def attached(config: Config) -> Broker:
    return connect(f"shm://{config.vhost}", name=f"broker {config.name}"[:56])


def made(config: Config, record: Record, former: int) -> int:
    """A vhost without queues, in the place of one of the past; its identity."""
    identity = identity_of(config.vhost)
    is_of_the_past = not identity or identity in (record.filling, former)
    if not is_of_the_past and has_queues(config.vhost):
        raise ForeignRings(
            f"vhost {config.vhost!r} exists and is not the one that store {config.store} was "
            f"written from: look whether somebody needs what is in it, then shmbroker vhost delete "
            f"{config.vhost}, and it is restored from the journal"
        )
    if vhosts.exists(config.vhost):
        vhosts.delete(config.vhost, force=True)
    vhosts.create(config.vhost, arena_bytes=config.arena)
    return identity_of(config.vhost)


def has_queues(vhost: str) -> bool:
    with connect(f"shm://{vhost}", observe=True) as broker:
        return bool(broker.queues())


def restored(
    config: Config,
    record: Record,
    former: int,
    begun: Callable[[int], object],
    progress: Progress | None,
) -> tuple[Broker, Restored]:
    """New rings, filled from the journal; `begun` is told their identity before."""
    begun(made(config, record, former))
    broker = attached(config)
    return broker, restore(broker, config.store / "journal", progress)
