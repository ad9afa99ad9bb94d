"""Taking messages for a session: a batch a call, copied once, from the arena into what is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shmbroker.core.codes import EMPTY, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.selector.selection import Selection

BATCH = 1024
FIRST = 16
"""So many are taken before it is known how large they are."""
_uncleared: Any = ffi.new_allocator(should_clear_after_alloc=False)


@dataclass(frozen=True, slots=True)
class Taken:
    queue: Queue
    messages: Any
    """As C knows them."""
    count: int
    body: memoryview
    """Their records."""


def take(queue: Queue, selection: Selection | None, most: int, size: int) -> Taken | None:
    """Up to so many, and about so many bytes, but one at least; None if there is nothing."""
    most = min(most, BATCH)
    messages = ffi.new("sb_message[]", most)
    count = used = 0
    step = 1 if selection is not None else min(most, FIRST)
    error: Error | None = None
    while count < most and used < size:
        code: int = (
            lib.sb_get_many(queue._queue, messages + count, min(step, most - count), 0)
            if selection is None
            else lib.sb_get_selected(queue._queue, messages + count, selection.selection, 0)
        )
        if code < OK:
            error = None if code == EMPTY else queue._error(code, "taking from")
            break
        taken = 1 if selection is not None else code
        used += lib.sb_records_room(messages + count, taken)
        count += taken
        step = max(1, (size - used) * count // used) if selection is None else 1
    if count == 0 and error is not None:
        raise error
    return _recorded(queue, messages, count) if count else None


def _recorded(queue: Queue, messages: Any, count: int) -> Taken:
    length = lib.sb_records_room(messages, count)
    buffer = _uncleared("int64_t[]", length // 8)
    lib.sb_records_of(messages, count, buffer)
    return Taken(queue, messages, count, memoryview(ffi.buffer(buffer, length)))
