"""Time-outs: seconds for people, nanoseconds for C."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic_ns

from shmbroker.ipc.base.errors import InvalidArgument

FOREVER = -1

Seconds = float | timedelta
"""How long: a number of seconds, or a timedelta."""


def nanoseconds(timeout: Seconds | None) -> int:
    """A time-out for C: None waits for ever, 0 does not wait."""
    if timeout is None:
        return FOREVER
    try:
        if timeout >= 0:  # type: ignore[operator]  # a timedelta is rare: it comes later
            return int(min(timeout, 1e9) * 1e9)  # type: ignore[arg-type]
    except TypeError:
        if isinstance(timeout, timedelta):
            return nanoseconds(timeout.total_seconds())
    raise InvalidArgument(
        f"a timeout is None or a number of seconds, or a timedelta, not {timeout!r}"
    )


def seconds(timeout: Seconds) -> float:
    """A time-out for asyncio."""
    nanoseconds(timeout)  # refuses what is no time-out
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout


class Deadline:
    """How much of a time-out is left, when a wait was interrupted and goes on."""

    def __init__(self, timeout_ns: int) -> None:
        self._end = None if timeout_ns < 0 else monotonic_ns() + timeout_ns

    def left(self) -> int:
        return FOREVER if self._end is None else max(0, self._end - monotonic_ns())

    def seconds_left(self) -> float | None:
        return None if self._end is None else max(0, self._end - monotonic_ns()) / 1e9
