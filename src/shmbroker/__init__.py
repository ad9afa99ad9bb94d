"""shmbroker: a message broker for one host or one rack, at the price of shared memory.

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shmbroker.ipc.errors import (
        ArenaFull,
        Damaged,
        DeliveryRevoked,
        Empty,
        Error,
        InvalidArgument,
        MessageGone,
        MessageTooLarge,
        NotASegment,
        NotFound,
        QueueFull,
        SegmentExists,
        SystemRefused,
    )
    from shmbroker.ipc.message import Message
    from shmbroker.ipc.ring import Ring

__all__ = [
    "ArenaFull",
    "Damaged",
    "DeliveryRevoked",
    "Empty",
    "Error",
    "InvalidArgument",
    "Message",
    "MessageGone",
    "MessageTooLarge",
    "NotASegment",
    "NotFound",
    "QueueFull",
    "Ring",
    "SegmentExists",
    "SystemRefused",
]

_ELSEWHERE = {"Message": "shmbroker.ipc.message", "Ring": "shmbroker.ipc.ring"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_ELSEWHERE.get(name, "shmbroker.ipc.errors")), name)
    globals()[name] = value
    return value
