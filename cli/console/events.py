"""Server-sent events: what changes, to each page that is open, from the one reader.

state     of the instance, and the sums of its queues
queues    rows that are new or other ones, names that are gone
queue     the queue whose page is open
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from starlette.concurrency import run_in_threadpool

from shmbroker.cli.console.reader import Reader
from shmbroker.cli.console.refusal import Refused
from shmbroker.cli.console.snapshot import Change

STREAMS_MAX: Final = 64
FIRST: Final = 200
"""Rows of the first event, the busiest queues: as many as a page shows at once."""
SILENT_SECONDS: Final = 15.0
"""Then a line is sent that says nothing: who is gone is noticed."""


def event(kind: str, content: object) -> bytes:
    text = json.dumps(content, ensure_ascii=True, default=repr)
    return f"event: {kind}\ndata: {text}\n\n".encode()


class Streams:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._count = 0

    def open(
        self, queue: str | None, queues: bool, may_go_on: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """`queues`: also all queues.  Refused: there are too many."""
        with self._lock:
            if self._count >= STREAMS_MAX:
                raise Refused(503, "busy", "too many pages are open")
            self._count += 1
        return self._stream(queue, queues, may_go_on)

    async def _stream(
        self, queue: str | None, queues: bool, may_go_on: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            # a loop that is closed has no streams
            if not loop.is_closed():
                loop.call_soon_threadsafe(heard.set)

        try:
            with self._reader.listening(tell, queue):
                seen = _Seen(self._reader, queue, queues)
                if self._reader.has_read:
                    heard.set()  # it is sent what is known, and then what changes
                yield b"retry: 2000\n\n"
                while may_go_on():
                    try:
                        await asyncio.wait_for(heard.wait(), SILENT_SECONDS)
                    except TimeoutError:
                        yield b": still here\n\n"
                        continue
                    heard.clear()
                    news = await run_in_threadpool(seen.news)
                    if news:
                        yield news
        finally:
            with self._lock:
                self._count -= 1


class _Seen:
    """What a stream has sent."""

    def __init__(self, reader: Reader, queue: str | None, queues: bool) -> None:
        self._reader, self._queue, self._queues = reader, queue, queues
        self._number = 0
        self._state: dict[str, Any] | None = None
        self._detail: dict[str, Any] | None = None

    def news(self) -> bytes:
        parts: list[bytes] = []
        if (state := self._reader.state()) != self._state:
            self._state = state
            parts.append(event("state", state))
        if self._queues:
            change = self._reader.since(self._number)
            self._number = change.number
            if not change.is_empty:
                parts += _parts(change)
        if self._queue is not None:
            detail = self._reader.detail(self._queue)
            if detail is not None and detail != self._detail:
                self._detail = detail
                parts.append(event("queue", detail))
        return b"".join(parts)


def _parts(change: Change) -> Iterator[bytes]:
    """What a page shows first comes first: it need not wait until it has read thousands of rows."""
    first = len(change.rows) if not change.is_whole else FIRST
    for begin, end in ((0, first), (first, len(change.rows))):
        if begin == 0 or begin < end:
            content = {
                "whole": change.is_whole and begin == 0, "rows": change.rows[begin:end],
                "gone": change.removed if begin == 0 else [], "more": end < len(change.rows),
            }  # fmt: skip
            yield event("queues", content)
