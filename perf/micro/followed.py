"""Something with a replica elsewhere: how fast the replica follows, and how late it is."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

BODY: Final = bytes(64)
TICK_S: Final = 0.001
POLL_S: Final = 0.0002
PATIENCE_S: Final = 120.0
DEPTH_MAX: Final = 1 << 14
"""Messages that are left in it while lags are measured."""


def waited_for(what: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    ends_at = time.monotonic() + patience_s
    while not what():
        if time.monotonic() > ends_at:
            raise TimeoutError(f"it did not happen in {patience_s:g} s")
        time.sleep(POLL_S)


class Followed(ABC):
    name: str

    @abstractmethod
    def publish(self, count: int) -> None:
        """So many messages of `BODY`."""

    @abstractmethod
    def drain(self, count: int) -> None:
        """So many of the oldest are gone."""

    @property
    @abstractmethod
    def published(self) -> int:
        """How many ever were."""

    @property
    @abstractmethod
    def arrived(self) -> int:
        """How many of them the replica has, or has had."""


def rate(each: Followed, count: int) -> float:
    """Messages a second, from the first publish until all are at the replica."""
    began = perf_counter()
    each.publish(count)
    waited_for(lambda: each.arrived >= each.published)
    spent = perf_counter() - began
    each.drain(count)
    return count / spent


def lag(each: Followed, rate: float, seconds: float) -> list[float]:
    """Of a batch in each tick: seconds from its publish until it is at the replica."""
    found: list[float] = []
    pending: deque[tuple[float, int]] = deque()
    began = due = perf_counter()
    sent = depth = 0
    while True:
        now = perf_counter()
        has = each.arrived if pending else 0
        while pending and pending[0][1] <= has:
            found.append(now - pending.popleft()[0])
        if now - began >= seconds and not pending:
            break
        if due <= now < began + seconds:
            many = max(1, int((now - began) * rate) - sent)
            each.publish(many)
            pending.append((now, each.published))
            sent, depth, due = sent + many, depth + many, now + TICK_S
            if depth > DEPTH_MAX:
                each.drain(DEPTH_MAX // 2)
                depth -= DEPTH_MAX // 2
        else:
            time.sleep(POLL_S)
    each.drain(depth)
    return found
