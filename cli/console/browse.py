"""Messages of a queue, looked at without being taken."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from shmbroker.cli.console.refusal import Refused
from shmbroker.cli.output import excerpt
from shmbroker.cli.selector import selects
from shmbroker.ipc.selector.selector import Selector

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.message.copied import CopiedMessage

PAGE: Final = 50
PAGE_MAX: Final = 500
EXCERPT: Final = 120
BODY_MAX: Final = 1 << 20
"""Bytes of a body that are shown."""
SECONDS: Final = 5.0
"""Then it answers what it has found, and how far it is."""


def page(broker: Broker, name: str, selector: str, after: int, count: int) -> dict[str, Any]:
    """Those behind this position, in order."""
    chosen = Selector(selector) if selector else None
    ends_at, last, is_whole = time.monotonic() + SECONDS, after, True
    found: list[dict[str, Any]] = []
    for message in _from(broker, name, after + 1):
        if len(found) >= min(max(1, count), PAGE_MAX) or (
            last > after and time.monotonic() > ends_at  # each page goes on, by one at least
        ):
            is_whole = False
            break
        last = message.position
        if selects(chosen, message):
            found.append(row(message))
    name_holders(broker, found)
    return {"messages": found, "last": last, "more": not is_whole}


def _from(broker: Broker, name: str, begin: int) -> Iterator[CopiedMessage]:
    queue = broker.queue(name)
    return (message for message, _ in queue._copies(queue._queue, begin=begin))


def name_holders(broker: Broker, rows: list[dict[str, Any]]) -> None:
    """Who has what is taken, as people know him."""
    if any(each["taken_by"] is not None for each in rows):
        names = {each.id: f"{each.name} ({each.id})" for each in broker.participants()}
        for each in rows:
            each["holder"] = names.get(each["taken_by"])


def row(message: CopiedMessage) -> dict[str, Any]:
    return {
        "position": message.position,
        "key": message.key,
        "published_at": message.published_at,
        "deliveries": message.deliveries,
        "taken": message.is_taken,
        "taken_by": message.taken_by,
        "holder": None,
        "priority": message.priority,
        "bytes": len(message.body),
        "excerpt": excerpt(message.body, EXCERPT),
    }


def whole(broker: Broker, name: str, position: int) -> dict[str, Any]:
    """One message, with properties and body."""
    for message in _from(broker, name, position):
        if message.position == position:
            expires, shown = message.expires_at, row(message)
            name_holders(broker, [shown])
            return {
                **shown,
                "properties": {key: plain(each) for key, each in message.properties.items()},
                "expires_at": None if expires is None else expires.isoformat(),
                "body": b64encode(message.body[:BODY_MAX]).decode(),
                "cut": len(message.body) > BODY_MAX,
            }
        if message.position > position:
            break
    raise Refused(404, "gone", f"queue {name!r} has no message {position} any more")


def plain(value: object) -> object:
    """As JSON has it: bytes are shown as Python writes them, large numbers as text."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return repr(value)
