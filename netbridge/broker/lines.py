"""Lines for the log: each change of a state, and of what repeats itself one in a while.

A stranger may knock as often as he likes, and a target may refuse a million messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

WHILE_SECONDS: Final = 60.0
KINDS_MAX: Final = 1000
"""Of lines that are remembered; more than that is a flood of links."""


class Lines:
    """`write`: of the log of an instance."""

    def __init__(self, write: Callable[..., None], clock: Callable[[], float]) -> None:
        self._write = write
        self._clock = clock
        self._written: dict[tuple[object, object], float] = {}
        self._left_out: dict[tuple[object, object], int] = {}

    def tell(self, line: Mapping[str, Any]) -> None:
        said = dict(line)
        event = said.pop("event")
        if "state" not in said:
            kind = said.get("link"), said.get("what")
            now = self._clock()
            if now - self._written.get(kind, -WHILE_SECONDS) < WHILE_SECONDS:
                self._left_out[kind] = self._left_out.get(kind, 0) + 1
                return
            if len(self._written) >= KINDS_MAX:
                self._written.clear()
                self._left_out.clear()
            self._written[kind] = now
            if more := self._left_out.pop(kind, 0):
                said["left_out"] = more
        self._write(event, **said)
