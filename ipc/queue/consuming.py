"""Consumers of a queue: they count where groups are bound, or a single consumer is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.core.codes import OK
from shmbroker.core.layout import RANK_MAX
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import InvalidArgument

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue
    from shmbroker.ipc.selector.selection import Selection


class Consuming:
    """From begin to end; what is bound to its connection is let go with the last of them."""

    __slots__ = ("_exclusive", "_has_begun", "_priority", "_queue", "_selection")

    def __init__(
        self,
        queue: OpenedQueue,
        priority: int,
        exclusive: bool,
        selection: Selection | None = None,
    ) -> None:
        if not isinstance(priority, int) or isinstance(priority, bool):
            raise InvalidArgument(
                f"the priority of a consumer is a number from 0 to {RANK_MAX}, not {priority!r}"
            )
        self._queue = queue
        self._priority = min(max(priority, -1), RANK_MAX + 1)
        self._exclusive = bool(exclusive)
        self._has_begun = False
        self._selection = selection

    def begin(self) -> None:
        """At first; InUse if it is exclusive and another consumer is active."""
        if self._has_begun:
            return
        code = OK
        if self._selection is not None:
            code = lib.sb_selects(self._queue._queue, self._selection.selection)
        if code == OK:
            code = lib.sb_consume_begin(self._queue._queue, self._priority, self._exclusive)
        if code < 0:
            raise self._queue._error(code, "consuming")
        self._has_begun = True

    def end(self) -> None:
        if self._has_begun:
            self._has_begun = False
            lib.sb_consume_end(self._queue._queue)
