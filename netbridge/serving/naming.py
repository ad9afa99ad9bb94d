"""Queues that programs on other hosts may name: not those that are the broker's own tables, and
not those in which it keeps what is acknowledged in transactions that have come with a broker that
has left (travelling.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.instance.leaving import HELD
from shmbroker.ipc.queue.grouped import ROUTES
from shmbroker.ipc.queue.inherited import INHERITED
from shmbroker.netbridge.remote.body import named

CLOSED: Final = (
    f"{ROUTES}.", f"{INHERITED}.", "$sink.marks.", "$sessions.commits.", "$turns.", HELD
)  # fmt: skip
"""How they begin, if a dot stands behind the name.  Those that lead to other brokers, `$sf.` and
others, are not among them: people look at these, and they guard themselves."""
TEMPORARY: Final = "tmp."


def is_closed(name: str) -> bool:
    return f"{name}.".startswith(CLOSED)


def allowed(name: str) -> str:
    """InvalidArgument: it is the broker's own."""
    if is_closed(name):
        raise InvalidArgument(
            f"queue {name!r} is the broker's own: programs on other hosts have no part in it"
        )
    return name


def temporary(name: str) -> str:
    """InvalidArgument: a temporary queue is not called so."""
    if not name.startswith(TEMPORARY):
        raise InvalidArgument(f"{name!r} is no temporary queue: those begin with {TEMPORARY!r}")
    return name


def queue_named(fields: Mapping[str, Any], field: str = "queue") -> str:
    """InvalidArgument, too: there is no such field."""
    return allowed(named(fields, field))
