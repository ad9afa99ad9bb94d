"""Progress of many messages: a line on a terminal, and a summary at the end."""

from __future__ import annotations

import sys
import time

from shmbroker.cli.units import format_count, format_duration, format_number, format_size

REDRAW_SECONDS = 0.1
ERASE = "\r\x1b[K"


class Progress:
    """Counts messages and bytes.  Rates cover what was added after `start`."""

    def __init__(self, done: str, count: int) -> None:
        self.done = done
        self.count = count
        self.messages = 0
        self.bytes = 0
        self.started = 0.0
        self.seconds = 0.0
        self._before = (0, 0)
        self._is_shown = sys.stderr.isatty()
        self._redraw_at = 0.0

    def start(self) -> None:
        self.started = time.perf_counter()
        self._before = (self.messages, self.bytes)

    def add(self, size: int) -> None:
        self.messages += 1
        self.bytes += size
        if self._is_shown and (now := time.perf_counter()) >= self._redraw_at:
            self._redraw_at = now + REDRAW_SECONDS
            self._draw(now)

    def stop(self) -> None:
        """End the measurement and remove the line."""
        self.seconds = time.perf_counter() - self.started if self.started else 0.0
        if self._is_shown:
            sys.stderr.write(ERASE)
            sys.stderr.flush()

    def _draw(self, now: float) -> None:
        percent = 100 * self.messages // self.count
        self.seconds = now - self.started if self.started else 0.0
        rate = format_number(self.rates[0])
        sys.stderr.write(f"{ERASE}{self.done} {self.messages:,} ({percent} %), {rate}/s")
        sys.stderr.flush()

    @property
    def rates(self) -> tuple[float, float]:
        """Messages and bytes a second."""
        if not self.seconds:
            return 0.0, 0.0
        messages, size = self._before
        return (self.messages - messages) / self.seconds, (self.bytes - size) / self.seconds

    def fields(self, destination: str) -> dict[str, object]:
        messages_per_second, bytes_per_second = self.rates
        return {
            "destination": destination,
            "messages": self.messages,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "messages_per_second": messages_per_second,
            "bytes_per_second": bytes_per_second,
        }

    def sentence(self, way: str, destination: str) -> str:
        """produced 10 messages, 10 KiB, to queue://orders in 1.2 ms: 8,300 messages/s, 8 MiB/s."""
        text = (
            f"{self.done} {format_count(self.messages, 'message')}, {format_size(self.bytes)}, "
            f"{way} {destination} in {format_duration(self.seconds)}"
        )
        messages_per_second, bytes_per_second = self.rates
        if not messages_per_second:
            return text
        speed = f"{format_number(messages_per_second)} messages/s"
        return f"{text}: {speed}, {format_size(bytes_per_second)}/s"
