"""Queues without their live writer: one place decides which these are.

A durable queue needs a broker that writes its journal, a queue that pages one that pages it.  Each
holds a lock for as long as it works (ipc/vhost/participant.c).  The schedule of a queue needs a
process that moves what is due; that process has noted it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from shmbroker.core import layout as at
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.catalog.catalog import NAMELESS
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.schedule.scheduled import ring_of
from shmbroker.ipc.vhost import vhost as vhosts

if TYPE_CHECKING:
    from shmbroker.ipc.catalog.catalog import Entry
    from shmbroker.ipc.connection.broker import Broker

NO_JOURNALER = "no broker writes its journal: what is published is neither confirmed nor delivered"
NO_PAGER = "no broker pages it: when its memory is full, producers wait"
NO_MOVER = "no process moves its scheduled messages: they are not delivered"


def without_writer(broker: Broker) -> dict[str, str]:
    """What is wrong, by the name of the queue.

    The catalog says of which queues that may be; the others are not opened.
    """
    broker._check_open()
    has_journaler = vhosts.has_journaler(broker.vhost)
    lacks_pager = broker._participants.has_pages and not vhosts.has_pager(broker.vhost)
    rows = list(broker._catalog.all_queues())
    scheduled = {_owner(each) for each in rows if each.word(at.QUEUE_FLAGS_AT) & at.QUEUE_SCHEDULE}
    found: dict[str, str] = {}
    for each in rows:
        flags = each.word(at.QUEUE_FLAGS_AT)
        if flags & NAMELESS:
            continue
        if flags & at.QUEUE_DURABLE and not has_journaler:
            found[each.name] = NO_JOURNALER
        elif lacks_pager or each.reference in scheduled:
            with suppress(Error):  # deleted meanwhile, or damaged
                if problem := _of_others(broker, each.name, lacks_pager):
                    found[each.name] = problem
    return dict(sorted(found.items()))


def _owner(schedule: Entry) -> int:
    """The queue whose it is: its name ends with the reference (ipc/catalog/beside.c)."""
    return int(schedule.name.rpartition("-")[2], 16)


def _of_others(broker: Broker, name: str, lacks_pager: bool) -> str | None:
    opened = broker.queue(name)
    if lacks_pager and opened.explain()["when_full"].value == "page":
        return NO_PAGER
    schedule = ring_of(opened)
    if schedule is None or opened.statistics().scheduled == 0:
        return None
    reference: int = lib.sb_queue_reference(schedule)
    return None if broker._participants.is_served(reference) else NO_MOVER


def findings(broker: Broker) -> Iterator[Finding]:
    for name, problem in without_writer(broker).items():
        yield Finding(
            "error",
            f"queue {name!r} of vhost {broker.vhost!r}",
            problem,
            f"start a broker of this vhost: shmbroker run --vhost {broker.vhost}"
            if problem == NO_MOVER
            else "start its broker: shmbroker run DIR; shmbroker status DIR says how it ended",
        )
