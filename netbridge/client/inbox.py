"""What was delivered to a consumer and nobody has asked for yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import ConnectionClosed, Error
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.netbridge.client.record import delivered
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import Malformed

if TYPE_CHECKING:
    from shmbroker.netbridge.client.session import Session
    from shmbroker.netbridge.remote.place import Place

Arrived = tuple[CopiedMessage, int, int]
"""With the generation of its session, and its number there."""


def runs(deliveries: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Generation, first number and how many: of those that follow each other."""
    start = 0
    for end in range(1, len(deliveries) + 1):
        generation, first = deliveries[start]
        if deliveries[end : end + 1] != [(generation, first + end - start)]:
            yield generation, first, end - start
            start = end


class Inbox:
    """Filled by the network thread, emptied by one consumer."""

    def __init__(self, session: Session, prefetch: int, place: Place | None = None) -> None:
        """`place`: of one that is shown the messages, and takes none."""
        self._session, self._place = session, place
        self.takes = place is None
        self._arrived: deque[Arrived] = deque()
        self._signal = session.way.signal()
        self._error: Error | None = None
        self.target = next(session.targets)
        self.prefetch = prefetch
        self.is_closed = False
        session.receivers[self.target] = self

    # --- in the network thread ----------------------------------------------------------------

    def take(self, generation: int, first: int, messages: int, body: Body) -> None:
        """Malformed, which the consumer is told, and which ends the link."""
        try:
            copies = list(delivered(body))
        except Malformed as error:
            self.unmade(error)
            raise
        self._arrived.extend((copy, generation, first + at) for at, copy in enumerate(copies))
        if self._place is not None and copies:
            self._place.position = copies[-1].position + 1
        self._signal.set()
        if self.is_closed:  # just now: nobody else looks any more
            self.give_back()

    def drop(self) -> None:
        with suppress(IndexError):  # the consumer may ask just now: each is in one hand only
            while True:
                copy, _generation, _number = self._arrived.pop()
                if self._place is not None:
                    self._place.position = copy.position
        if self._session.is_closed:
            self._error = self._session.ended()
            self._signal.set()

    def unmade(self, error: Error) -> None:
        self._error = error
        self._signal.set()

    @property
    def has_more(self) -> bool:
        return bool(self._arrived)

    # --- of the consumer ----------------------------------------------------------------------

    async def next(self, timeout: Seconds | None) -> Arrived | None:
        """None if none came in time."""
        deadline = Deadline(nanoseconds(timeout))
        while True:
            signal = self._signal
            try:
                return self._arrived.popleft()
            except IndexError:
                pass
            if self._error is not None:
                raise self._error
            if signal.is_set:
                self._signal = self._session.way.signal()
                if self._arrived or self._error:
                    self._signal.set()
            elif not await self._session.way.wait(signal, deadline.seconds_left()):
                return None

    def give_back(self) -> None:
        """What nobody has asked for, in order.  Any thread; each message is in one hand only."""
        left: list[tuple[int, int]] = []
        with suppress(IndexError):
            while True:
                _copy, generation, number = self._arrived.popleft()
                left.append((generation, number))
        for generation, first, count in runs(left):
            self._session.give_back(generation, first, count)

    def close(self) -> None:
        self.is_closed = True
        self._session.receivers.pop(self.target, None)
        if self._error is None:
            self._error = ConnectionClosed("this consumer was closed")
        self._signal.set()
        self.give_back()
