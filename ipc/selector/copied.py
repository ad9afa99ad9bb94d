"""A selector, and a message that is looked at and not taken."""

from __future__ import annotations

from shmbroker.core.layout import LEVEL_DEFAULT
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.selector.selector import Selector


def matches_copied(selector: Selector, message: CopiedMessage) -> bool:
    expires_at = message.expires_at
    return selector.matches(
        message.properties,
        key=message.key or "",
        size=len(message.body),
        priority=LEVEL_DEFAULT if message.priority is None else message.priority,
        deliveries=message.deliveries,
        published_at=message.published_at,
        expires_at=0 if expires_at is None else int(expires_at.timestamp() * 1e9),
    )
