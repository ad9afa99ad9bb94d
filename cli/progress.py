"""How far many messages have got: a line on a terminal, and a sum at the end."""

from __future__ import annotations

import sys
import time

from shmbroker.cli.units import format_count, format_duration, format_number, format_size

REDRAW_SECONDS = 0.1
ERASE = "\r\x1b[K"


class Progress:
    """Counts messages and bytes; the clock starts with the first message."""

    def __init__(self, done: str, count: int) -> None:
        self.done = done
        self.count = count
        self.messages = 0
        self.bytes = 0
        self.started = 0.0
        self.seconds = 0.0
        self._is_shown = sys.stderr.isatty()
        self._redraw_at = 0.0

    def start(self) -> None:
        self.started = time.perf_counter()

    def add(self, size: int) -> None:
        self.messages += 1
        self.bytes += size
        if self._is_shown and (now := time.perf_counter()) >= self._redraw_at:
            self._redraw_at = now + REDRAW_SECONDS
            self._draw(now)

    def stop(self) -> None:
        """The sum is about what was until now; the line goes away."""
        self.seconds = time.perf_counter() - self.started if self.started else 0.0
        if self._is_shown:
            sys.stderr.write(ERASE)
            sys.stderr.flush()

    def _draw(self, now: float) -> None:
        percent = 100 * self.messages // self.count
        rate = format_number(self.messages / max(now - self.started, 1e-9))
        sys.stderr.write(f"{ERASE}{self.done} {self.messages:,} ({percent} %), {rate}/s")
        sys.stderr.flush()

    @property
    def rate(self) -> float:
        return self.messages / self.seconds if self.seconds else 0.0

    def fields(self, destination: str) -> dict[str, object]:
        return {
            "destination": destination,
            "messages": self.messages,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "messages_per_second": self.rate,
            "bytes_per_second": self.bytes / self.seconds if self.seconds else 0.0,
        }

    def sentence(self, way: str, destination: str) -> str:
        """produced 10 messages, 10 KiB, to queue://orders in 1.2 ms: 8,300/s, 8.1 MiB/s."""
        text = (
            f"{self.done} {format_count(self.messages, 'message')}, {format_size(self.bytes)}, "
            f"{way} {destination} in {format_duration(self.seconds)}"
        )
        if self.messages < 2:
            return text
        throughput = format_size(self.bytes / self.seconds)
        return f"{text}: {format_number(self.rate)} messages/s, {throughput}/s"
