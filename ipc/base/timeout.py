"""Time-outs: seconds for people, nanoseconds for C."""

from __future__ import annotations

from time import monotonic_ns

from shmbroker.ipc.base.errors import InvalidArgument

FOREVER = -1


def nanoseconds(timeout: float | None) -> int:
    """A time-out for C: None waits for ever, 0 does not wait."""
    if timeout is None:
        return FOREVER
    try:
        if timeout >= 0:
            return int(min(timeout, 1e9) * 1e9)
    except TypeError:
        pass
    raise InvalidArgument(f"a timeout is None or a number of seconds, not {timeout!r}")


class Deadline:
    """How much of a time-out is left, when a wait was interrupted and goes on."""

    def __init__(self, timeout_ns: int) -> None:
        self._end = None if timeout_ns < 0 else monotonic_ns() + timeout_ns

    def left(self) -> int:
        return FOREVER if self._end is None else max(0, self._end - monotonic_ns())

    def seconds_left(self) -> float | None:
        return None if self._end is None else max(0, self._end - monotonic_ns()) / 1e9
