"""A broker that gives away what it has before it ends, and begins with nothing when it is back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from shmbroker.core.layout import QUEUE_FLAGS_AT, QUEUE_TEMPORARY
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import NotFound, Replaced
from shmbroker.ipc.base.names import OWN, name_bytes
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance.lock.live_lock import LiveLock
from shmbroker.ipc.instance.store import Store
from shmbroker.ipc.instance.whole import sync_folder
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.copy import followed_by
from shmbroker.ipc.vhost import vhost as vhosts

HELD: Final = "$held."
"""How a queue begins that has what is acknowledged in a transaction of a program on another host
(netbridge/serving/travelling.py)."""
SHIPPED: Final = ("$sf.", "$bridge.", "$link.", "$mta", "$turns.")
"""So its own queues begin whose messages go to other brokers (ipc/catalog/node.c)."""
SOMETHING_STAYED: Final = 3
"""The exit code of a broker that was stopped and has not moved everything: systemd leaves it alone
(unit.py), as after any stop."""
STOPPED: Final = "it was stopped before everything was moved"
FORCE_OF_BROKER: Final = 2
"""Nobody else deletes some of its own queues: ipc/catalog/delete_queue.c."""
SPARE: Final = ".spare"
"""Of files that are to become segments of the journal: a backup has some ready."""


@dataclass(frozen=True, slots=True)
class Left:
    """What has come of it."""

    is_whole: bool
    why: str = ""
    """Of what is still here."""


UNSEEN: Final = Left(is_whole=False, why=STOPPED)
"""Until it was looked at."""


def that_go(broker: Broker) -> Iterator[Queue]:
    """Queues whose messages belong to nobody here: those towards other nodes are not among them.

    A temporary queue is that of a program, and a queue that follows another one has copies.
    """
    for row in broker._catalog.queues():
        is_own = row.name.startswith(OWN) and not row.name.startswith(HELD)
        if is_own or row.word(QUEUE_FLAGS_AT) & QUEUE_TEMPORARY:
            continue
        with suppress(NotFound):  # deleted since
            queue = broker.queue(row.name)
            if not followed_by(queue):
                yield queue


def delete_own(broker: Broker, name: str) -> None:
    """A queue that programs cannot delete; NotFound."""
    code = lib.sb_delete_queue(broker._connection, name_bytes(name), FORCE_OF_BROKER)
    broker._check(code, f"deleting queue {name!r}")


def count_in(queue: Queue) -> int:
    """None, if it was deleted since."""
    with suppress(NotFound):
        found = queue.statistics()
        return found.depth + found.scheduled
    return 0


def left_behind(broker: Broker) -> str:
    """Of one that should have nothing any more: what it still has, or nothing.

    What waits for a bridge, an agent or a network link goes with none of its queues.
    """
    late = _in_each(that_go(broker))
    waits = _in_each(_shipped(broker))
    found = [f"came too late to be moved: {late}"] if late else []
    return "; ".join([*found, f"waits for another broker: {waits}"] if waits else found)


def _in_each(queues: Iterable[Queue]) -> str:
    found = {each.name: count_in(each) for each in queues}
    return ", ".join(f"{count} in queue {name!r}" for name, count in found.items() if count)


def _shipped(broker: Broker) -> Iterator[Queue]:
    for name in broker._catalog.queue_names().values():
        if name.startswith(SHIPPED):
            with suppress(NotFound):  # deleted since
                yield broker.queue(name)


def empty(store: Store, vhost: str, lock: LiveLock) -> None:
    """All of it is elsewhere.  The node stays what it is.  Replaced: who stood still for longer
    than its lease would empty what its successor has."""
    if vhosts.exists(vhost):
        _check(lock)
        vhosts.delete(vhost, force=True)
    for folder in (store.journal, store.pages):
        for each in folder.glob("*") if folder.is_dir() else ():
            if each.is_file() and each.suffix != SPARE:
                _check(lock)
                each.unlink()
        if folder.is_dir():  # before the record says that we are live: what came back was moved
            sync_folder(folder)


def _check(lock: LiveLock) -> None:
    if not lock.is_held:
        raise Replaced("the lease on being live ran out before the store was emptied")
