"""The metrics of a vhost and of its queues, from shared memory."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from shmbroker.cli.metrics.histogram import Buckets
from shmbroker.cli.metrics.queues import Queues
from shmbroker.cli.metrics.sheet import Sheet
from shmbroker.core import layout as at
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.latency.latency import counts_of
from shmbroker.ipc.vhost import vhost as vhosts

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

QUEUES_MAX: Final = 500
"""So many queues have samples of their own, unless the caller says otherwise."""
HISTOGRAMS_MAX: Final = 100
"""So many of them have histograms of their own."""
OTHERS: Final = "(others)"
TEMPORARY: Final = "(temporary)"
STATES: Final = ("live", "closing", "leaving", "dead")
LATENCIES: Final = {"publish-take": "queue_wait_seconds", "take-ack": "queue_hold_seconds",
                    "publish-durable": "queue_durable_seconds"}  # fmt: skip
GAUGES: Final = ("depth", "taken", "slots", "set_aside", "scheduled", "paged", "paged_bytes",
                 "paused", "consumers", "producers")  # fmt: skip
COUNTERS: Final = ("published", "delivered", "acked", "redelivered", "expired", "dead_lettered",
                   "dropped", "replaced", "duplicates", "slow_consumers")  # fmt: skip


def collect(sheet: Sheet, vhost: str, queues_max: int) -> None:
    """Nothing but `vhost_up` if nobody has made it, or it is being restored."""
    from shmbroker.ipc.base.errors import Error
    from shmbroker.ipc.connection.broker import connect

    memory = os.statvfs("/dev/shm")
    sheet.put("shared_memory_free_bytes", memory.f_bavail * memory.f_frsize, vhost)
    try:
        broker = connect(f"shm://{vhost}", observe=True)
    except Error:
        sheet.put("vhost_up", 0, vhost)
        return
    with broker:
        sheet.put("vhost_up", 1, vhost)
        queues = Queues(broker)
        of_vhost(sheet, broker, queues)
        of_queues(sheet, broker, queues, queues_max)


def of_vhost(sheet: Sheet, broker: Broker, queues: Queues) -> None:
    vhost = broker.vhost
    sheet.put("vhost_queues", len(queues.names), vhost)
    sheet.put("vhost_durable_queues", int(queues.is_durable.sum()), vhost)
    sheet.put("vhost_journal_written", vhosts.has_journaler(vhost), vhost)
    sheet.put("vhost_paged_by_broker", vhosts.has_pager(vhost), vhost)
    participants = broker._participants.listed({})  # what each has open is not asked
    states = Counter(each.state for each in participants)
    for state in STATES:
        sheet.put("vhost_participants", states[state], vhost, state)
    errors = broker.errors()
    sheet.put("vhost_error_kinds", len(errors), vhost)
    last = max((each.last_at for each in errors), default=0)
    sheet.put("vhost_last_error_timestamp_seconds", last / 1e9, vhost)
    sheet.put("vhost_arena_bytes", len(broker._arena), vhost)
    sheet.put("vhost_arena_used_bytes", arena_used(broker), vhost)


def arena_used(broker: Broker) -> int:
    """Bytes, by all participants."""
    shares = ffi.new("int64_t[]", at.PARTICIPANTS)
    lib.sb_arena_shares(broker._connection, shares)
    return int(np.frombuffer(ffi.buffer(shares), np.int64).sum())


def named(queues: Queues, queues_max: int) -> list[str]:
    """How each queue is called in its samples: those of the lowest rows have their own names.

    A queue keeps its row, so it keeps its name as long as it is there.
    """
    found, left = [], queues_max
    for name, is_temporary in zip(queues.names, queues.is_temporary.tolist(), strict=True):
        if is_temporary:
            found.append(TEMPORARY)
        else:
            found.append(name if left > 0 else OTHERS)
            left -= 1
    return found


def of_queues(sheet: Sheet, broker: Broker, queues: Queues, queues_max: int) -> None:
    names = named(queues, queues_max)
    labels = list(dict.fromkeys(names))
    places = {name: place for place, name in enumerate(labels)}
    rows = np.array([places[name] for name in names], np.int64)
    for figure in (*GAUGES, *COUNTERS):
        sums = np.zeros(len(labels))
        np.add.at(sums, rows, queues.figures[figure])
        metric = f"queue_{figure}" + ("_total" if figure in COUNTERS else "")
        for name, value in zip(labels, sums.tolist(), strict=True):
            sheet.put(metric, value, broker.vhost, name)
    oldest = np.zeros(len(labels))
    np.maximum.at(oldest, rows, queues.figures["oldest_ns"])
    for name, value in zip(labels, (oldest / 1e9).tolist(), strict=True):
        sheet.put("queue_oldest_age_seconds", value, broker.vhost, name)
    of_latencies(sheet, broker, queues, names)


def of_latencies(sheet: Sheet, broker: Broker, queues: Queues, names: list[str]) -> None:
    sums: dict[tuple[str, str], Buckets] = {}
    own: set[str] = set()
    for row in np.flatnonzero(queues.is_recorded).tolist():
        counts = counts_of(broker._connection, int(queues.references[row]))
        if isinstance(counts, int):  # deleted meanwhile
            continue
        name = names[row]
        if name not in own and len(own) >= HISTOGRAMS_MAX:
            name = OTHERS
        own.add(name)
        for kind, each in counts.items():
            sums.setdefault((LATENCIES[kind], name), Buckets()).add(each)
    for (metric, name), buckets in sums.items():
        sheet.put_buckets(metric, buckets.shown(), buckets.seconds, broker.vhost, name)
