"""A message, and what selectors say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from shmbroker.core.layout import LEVEL_DEFAULT

GROUP, ID = "JMSXGroupID", "JMSMessageID"
DELIVERIES_MAX = 15
"""As many as the word of a message can count."""

AT_ONCE, NOT_TODAY = 1e-9, 7 * 86400.0
"""Times that are over, or to come, whenever somebody looks."""


@dataclass(eq=False)
class MessageModel:
    body: bytes
    key: str | None = None
    priority: int | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    ttl: float | None = None
    position: int = -1
    age: int = -1
    """The position at which its value was published first; below all if it was returned."""
    carried_from: int | None = None
    state: str = "ready"
    deliveries: int = 0
    holder: int | None = None
    came_back: bool = False
    """In its place, without a delay."""

    @property
    def level(self) -> int:
        return LEVEL_DEFAULT if self.priority is None else self.priority

    @property
    def is_expired(self) -> bool:
        return self.ttl == AT_ONCE

    @property
    def n(self) -> int | None:
        return self.properties.get("n")

    def counted(self) -> int:
        return min(DELIVERIES_MAX, self.deliveries + 1)

    def copy(self) -> MessageModel:
        """To be published anew."""
        return replace(self, properties=dict(self.properties), position=-1, age=-1,
                       carried_from=None, state="ready", deliveries=0, holder=None,
                       came_back=False)  # fmt: skip


SELECTORS: dict[str, Callable[[MessageModel], bool]] = {
    "n = 1": lambda message: message.n == 1,
    "n BETWEEN 2 AND 3": lambda message: message.n in (2, 3),
    "n IS NULL": lambda message: message.n is None,
    "$priority > 4": lambda message: message.level > 4,
    "JMSXGroupID LIKE 'a%'": lambda message: message.properties.get(GROUP, "").startswith("a"),
    "n <> 3": lambda message: message.n in (1, 2),
    "n = 99": lambda message: False,
}
