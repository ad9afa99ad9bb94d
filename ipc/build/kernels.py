"""All kernels: importing this registers every one of them, lower floors first."""

from __future__ import annotations

from shmbroker.core import (  # noqa: F401
    balance,
    barrier,
    batch,
    bell,
    binding,
    block,
    carry,
    catalog,
    chunk,
    closed,
    commit,
    cursor,
    declared,
    deletion,
    due,
    duplicate,
    expiry,
    gate,
    head,
    headers,
    histogram,
    ids,
    latest,
    like,
    moment,
    names,
    once,
    open_number,
    origin,
    original,
    packed,
    paging,
    port,
    pour,
    producer,
    program,
    publish,
    purge,
    put_aside,
    reclaim,
    record,
    repair,
    replica,
    restore,
    retired,
    route,
    row,
    run,
    selector,
    span,
    spinning,
    tail,
    take,
    topic,
    transaction,
    value,
    word,
)
from shmbroker.core.kernel import KERNELS
from shmbroker.ipc.broker import appending  # noqa: F401
from shmbroker.ipc.journal import checking  # noqa: F401
from shmbroker.ipc.paging import moving, sealing  # noqa: F401
from shmbroker.ipc.queue_replica import staging  # noqa: F401
from shmbroker.ipc.ring import (
    recording,  # noqa: F401
    verbs,  # noqa: F401
    waiting,  # noqa: F401
)
from shmbroker.ipc.sink import pouring  # noqa: F401

__all__ = ["KERNELS"]
