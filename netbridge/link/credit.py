"""Credit of one target: sums since it was opened, so that telling it twice changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.link.times import NO_LIMIT, LinkTimes
from shmbroker.netbridge.wire.frame import COUNT_MAX, Credit


@dataclass(slots=True)
class Allowance:
    """At the source: what may be sent."""

    messages: int = 0
    bytes: int = 0
    sent_messages: int = 0
    sent_bytes: int = 0

    @property
    def left_messages(self) -> int:
        return max(0, self.messages - self.sent_messages)

    @property
    def left_bytes(self) -> int:
        return max(0, self.bytes - self.sent_bytes)

    @property
    def is_open(self) -> bool:
        """One message may go as long as there are bytes left, however large it is."""
        return self.sent_messages < self.messages and self.sent_bytes < self.bytes

    def raise_to(self, messages: int, size: int) -> None:
        self.messages = max(self.messages, messages)
        self.bytes = max(self.bytes, size)

    def spend(self, messages: int, size: int) -> None:
        self.sent_messages += messages
        self.sent_bytes += size


class Window:
    """At the target: what was granted, what came, and what is appended."""

    def __init__(self, times: LinkTimes) -> None:
        self.times = times
        self.wanted = 0
        """With a window of 0: so many messages were asked for."""
        self.came = Allowance()
        self.appended_messages = self.appended_bytes = 0
        self._told = (-1, -1)
        size, most = times.window_size, times.window_messages
        self._is_asked = size == 0 or most == 0
        self._bytes = times.memory if size == NO_LIMIT else size
        self._step_bytes = max(1, self._bytes // 4)
        self._step_messages = COUNT_MAX if most == NO_LIMIT else max(1, most // 4)
        self._raise()

    def _raise(self) -> None:
        came = self.came
        if self._is_asked:
            came.raise_to(self.wanted, self.appended_bytes + 1 if self._waits else came.bytes)
        else:
            messages = self.times.window_messages
            most = COUNT_MAX if messages == NO_LIMIT else self.appended_messages + messages
            came.raise_to(most, self.appended_bytes + self._bytes)

    @property
    def _waits(self) -> bool:
        return self.wanted > self.came.sent_messages

    def want(self, messages: int) -> None:
        self.wanted += messages
        self._raise()

    def take(self, messages: int, size: int) -> bool:
        """A batch has come; False: it may not have."""
        came = self.came
        fits = messages <= came.left_messages and (size <= came.left_bytes or messages == 1)
        allowed = came.is_open and fits
        came.spend(messages, size)
        return allowed

    def appended(self, messages: int, size: int) -> None:
        self.appended_messages += messages
        self.appended_bytes += size
        self._raise()

    def news(self, target: int) -> Credit | None:
        """What the source is to be told: as soon as a quarter of the window is free again."""
        messages, size = self.came.messages, self.came.bytes
        told_messages, told_size = self._told
        if size - told_size < self._step_bytes and messages - told_messages < self._step_messages:
            return None
        self._told = messages, size
        return Credit(target, messages, size)

    def first(self) -> tuple[int, int]:
        self._told = self.came.messages, self.came.bytes
        return self._told
