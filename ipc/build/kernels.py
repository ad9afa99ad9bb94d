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
    names,
    once,
    open_number,
    origin,
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
    repair,
    replica,
    restore,
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
from shmbroker.ipc.ring import (
    recording,  # noqa: F401
    verbs,  # noqa: F401
    waiting,  # noqa: F401
)
from shmbroker.ipc.sink import pouring  # noqa: F401

__all__ = ["KERNELS"]
