"""One stream over the wire: how many messages a second, and when the first one comes after the
remote live was killed.  Each message is counted: it comes once, or the measurement fails."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

BODY_BYTES = 256
NUMBER_BYTES = 8
BURST = 256
PATIENCE_SECONDS = 120.0
EACH_SECONDS = 0.001
"""Between two messages while the live is killed."""
STEADY = 300
"""Come before that."""


class Lost(Exception):
    """A message has not come, or came twice."""


class Way(ABC):
    """How messages get from one rack to the other."""

    name: str
    backlog = 8192
    """So many may be on their way: more than fit into 100 ms."""
    may_repeat = False
    """After a failover, messages may come twice."""

    @abstractmethod
    def send(self, bodies: Sequence[bytes]) -> None: ...

    @abstractmethod
    def take(self) -> list[bytes]:
        """What has come; it waits for a millisecond."""

    def story(self) -> str:
        """What is known if nothing comes."""
        return ""

    def kill(self) -> None:
        """The remote live."""
        raise NotImplementedError

    def has_taken_over(self) -> bool:
        """Whether the other one of the pair is live."""
        raise NotImplementedError

    def restore(self) -> None:
        """Both are there again, as in the beginning."""
        raise NotImplementedError


class Stream:
    def __init__(self, way: Way) -> None:
        self.way = way
        self.sent = 0
        self.came: set[int] = set()
        self.repeated = 0

    def send(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        filling = bytes(BODY_BYTES - NUMBER_BYTES)
        self.way.send([each.to_bytes(NUMBER_BYTES, "little") + filling for each in numbers])
        self.sent += count

    def take(self) -> list[int]:
        found = [int.from_bytes(each[:NUMBER_BYTES], "little") for each in self.way.take()]
        for each in found:
            self.repeated += each in self.came
            self.came.add(each)
        return found

    def drain(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while len(self.came) < self.sent:
            self.take()
            if time.monotonic() > until:
                missing = self.sent - len(self.came)
                raise Lost(f"{self.way.name}: {missing} of {self.sent} did not come\n"
                           f"{self.way.story()}")  # fmt: skip
        if self.repeated and not self.way.may_repeat:
            raise Lost(f"{self.way.name}: {self.repeated} came twice")


def rate(way: Way, seconds: float, warm: float) -> float:
    """Messages a second that come, once so many seconds are over."""
    stream = Stream(way)
    began, counts_from, had = time.monotonic(), 0.0, 0
    while True:
        if stream.sent - len(stream.came) < way.backlog:
            stream.send(min(BURST, way.backlog))
        stream.take()
        now = time.monotonic()
        if not counts_from and stream.came and now > began + warm:
            counts_from, had = now, len(stream.came)
        elif counts_from and now > counts_from + seconds:
            break
        if now > began + warm + seconds + PATIENCE_SECONDS:
            raise Lost(f"{way.name}: nothing comes\n{way.story()}")
    found = (len(stream.came) - had) / (now - counts_from)
    stream.drain()
    return found


@dataclass(frozen=True, slots=True)
class Failover:
    """Seconds since the kill."""

    first: float
    """Until the first message that was sent after it has come."""
    takeover: float
    """Until the other one is live."""
    repeated: int


def failover(way: Way) -> Failover:
    stream = Stream(way)
    while len(stream.came) < STEADY:
        _step(stream)
    sent, began, takeover = stream.sent, time.monotonic(), 0.0
    way.kill()
    while True:
        first = any(each >= sent for each in _step(stream))
        now = time.monotonic() - began
        if not takeover and way.has_taken_over():
            takeover = now
        if first:
            break
        if now > PATIENCE_SECONDS:
            raise Lost(f"{way.name}: nothing comes after the kill\n{way.story()}")
    way.restore()
    stream.drain()
    return Failover(now, takeover or now, stream.repeated)


def _step(stream: Stream) -> list[int]:
    if stream.sent - len(stream.came) < stream.way.backlog:
        stream.send(1)
    until, found = time.monotonic() + EACH_SECONDS, stream.take()
    time.sleep(max(0.0, until - time.monotonic()))
    return found
