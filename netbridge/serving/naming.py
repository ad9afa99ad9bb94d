"""Queues that programs on other hosts may name: not those in which the broker keeps what is
acknowledged in transactions that have come with a broker that has left (travelling.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.instance.leaving import HELD
from shmbroker.netbridge.remote.body import named


def is_held(name: str) -> bool:
    """`$held` as well, which says what is whole."""
    return f"{name}.".startswith(HELD)


def allowed(name: str) -> str:
    """InvalidArgument: it is the broker's own."""
    if is_held(name):
        raise InvalidArgument(
            f"queue {name!r} is the broker's own: it has what is acknowledged in open transactions"
        )
    return name


def queue_named(fields: Mapping[str, Any], field: str = "queue") -> str:
    """InvalidArgument, too: there is no such field."""
    return allowed(named(fields, field))
