"""All kernels: importing this registers every one of them, lower floors first."""

from __future__ import annotations

from shmbroker.core import (  # noqa: F401
    batch,
    bell,
    block,
    chunk,
    cursor,
    gate,
    head,
    port,
    producer,
    publish,
    reclaim,
    run,
    sweep,
    tail,
    take,
    word,
)
from shmbroker.core.kernel import KERNELS
from shmbroker.ipc import verbs, waiting  # noqa: F401

__all__ = ["KERNELS"]
