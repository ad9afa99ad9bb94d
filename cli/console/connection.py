"""A connection of a browser: whoever sends no whole request for a while, or does not read what is
answered, is cut off.

There are only so many connections; without this, a stranger who holds them all would keep everybody
else out.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS: Final = 5.0
"""From a connection, or an answer, to the end of the headers of the next request."""
READ_SECONDS: Final = 5.0
"""For the 48 KiB by which what is to be sent goes down from the upper mark to the lower one."""


class Connection(H11Protocol):
    _ends: asyncio.TimerHandle | None = None
    _stalls: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalls = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._read_on()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._read_on()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._ends is None:
            self._ends = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _stop(self) -> None:
        if self._ends is not None:
            self._ends.cancel()
        self._ends = None

    def _read_on(self) -> None:
        if self._stalls is not None:
            self._stalls.cancel()
        self._stalls = None
