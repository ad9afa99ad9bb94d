"""A body that is larger than a frame travels in several, one behind the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from shmbroker.netbridge.remote.broken import SessionBroken
from shmbroker.netbridge.wire.codec import HEAD_BYTES_MAX
from shmbroker.netbridge.wire.frame import Body, Command, Delivery, Result

Long = TypeVar("Long", bound=Command | Result | Delivery)


def parted(whole: Long, frame_bytes: int) -> Iterable[Long]:
    step = frame_bytes - HEAD_BYTES_MAX
    return (whole,) if len(whole.body) <= step else _cut(whole, step)


def _cut(whole: Long, step: int) -> Iterator[Long]:
    body = memoryview(whole.body)
    for at in range(0, len(body), step):
        yield replace(whole, more=at + step < len(body), body=body[at : at + step])


class Assembly:
    """Of one end: what came of a body so far, bounded; a link that is lost takes it along."""

    def __init__(self, message_bytes: int) -> None:
        self.message_bytes = message_bytes
        self._number = -1
        self._body = bytearray()

    def add(self, frame: Long) -> Long | None:
        """The whole, when this was its last part."""
        if self._number == -1 and not frame.more:
            return frame
        if self._number not in (-1, frame.number):
            raise SessionBroken(f"{frame.number} begins, and {self._number} has not all parts")
        self._number = frame.number
        self._body += frame.body
        if len(self._body) > self.message_bytes:
            raise SessionBroken(f"a body of more than {self.message_bytes} bytes")
        if frame.more:
            return None
        body: Body = bytes(self._body)
        self.clear()
        return replace(frame, more=False, body=body)

    def clear(self) -> None:
        self._number = -1
        self._body = bytearray()
