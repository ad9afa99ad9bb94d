"""Taking messages for a session: a batch a call, copied once, from the arena into what is sent.

What is sent at once has a limit.  What was taken beyond it goes in several portions; a message that
is larger by itself is given back, and who asked for it is told.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from shmbroker.core.codes import EMPTY, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.selector.selection import Selection
from shmbroker.netbridge.serving.answer import too_large
from shmbroker.netbridge.serving.hands import TakenBatch

BATCH = 1024
_uncleared: Any = ffi.new_allocator(should_clear_after_alloc=False)


@dataclass(frozen=True, slots=True)
class Taken:
    batch: TakenBatch
    count: int
    body: memoryview
    """Their records."""


def take(
    queue: Queue, selection: Selection | None, most: int, size: int, limit: int
) -> Generator[Taken, None, None]:
    """Up to so many, and about so many bytes, but one at least, in portions of `limit` at most.

    Nothing, if there is nothing.  Who does not go on to the end gives the others back.
    """
    most = min(most, BATCH)
    messages = ffi.new("sb_message[]", most)
    count: int = (
        lib.sb_get_fitting(queue._queue, messages, most, min(size, limit), 0)
        if selection is None
        else _selected(queue, selection, messages, most, size)
    )
    if count < OK:
        if count != EMPTY:
            raise queue._error(count, "taking from")
        return
    start = 0
    try:
        while start < count:
            part = _portion(queue, messages, start, count, limit)
            start += part.count
            yield part
    finally:
        TakenBatch(queue, messages).give_back(start, count - start)


def _selected(queue: Queue, selection: Selection, messages: Any, most: int, size: int) -> int:
    count = used = 0
    while count < most and used < size:
        message = messages + count
        code: int = lib.sb_get_selected(queue._queue, message, selection.selection, 0)
        if code < OK:
            return count or code
        used += lib.sb_records_room(message, 1)
        count += 1
    return count


def _portion(queue: Queue, messages: Any, start: int, end: int, limit: int) -> Taken:
    length = lib.sb_records_room(messages + start, end - start)
    while length > limit and end - start > 1:
        end = start + (end - start) // 2
        length = lib.sb_records_room(messages + start, end - start)
    if length > limit:
        raise too_large(f"the next message of queue {queue.name!r}", length, limit)
    buffer = _uncleared("int64_t[]", length // 8)
    lib.sb_records_of(messages + start, end - start, buffer)
    batch = TakenBatch(queue, messages, start)
    return Taken(batch, end - start, memoryview(ffi.buffer(buffer, length)))
