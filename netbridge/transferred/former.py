"""Agents of before, in a broker that has no network any more: what would wait for them, would wait
for ever."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.own_binding import own_bindings, unbind_own

WAITING: Final = "$mta."
"""As in `netbridge/agent/option.py`, without what that needs to read a configuration."""


def unbind(broker: Broker) -> None:
    """What waits already stays in its queue."""
    for each in own_bindings(broker):
        if each.queue.startswith(WAITING):
            with suppress(NotFound):  # an end of it was deleted meanwhile
                unbind_own(broker, each)
