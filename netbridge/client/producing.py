"""The producer that a session has for a queue or an exchange: made with the first message."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import ConnectionClosed, Error, MessageTooLarge, NotFound
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.confirm import Confirm, level_of
from shmbroker.netbridge.client.pending import Pending, Several
from shmbroker.netbridge.client.record import BATCH, plain_batch
from shmbroker.netbridge.remote.body import asked, told
from shmbroker.netbridge.remote.call import Many
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.wire.words import Demand, Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.client.session import Session

PIECE_BYTES = 256 << 10
"""Of one command: the broker pours one while the next is on its way."""


def demand_of(confirm: Confirm | None) -> Demand:
    level_of(confirm)  # refuses what is no level
    return Demand.EFFECTIVE if confirm is None else Demand(confirm)


class Producing:
    def __init__(self, session: Session, noun: str, name: str) -> None:
        """`noun`: queue or exchange."""
        self._session = session
        self._noun, self._name = noun, name
        self._what = f"publishing to {noun} {name!r}"
        self._target = 0
        self._one_by_one = threading.RLock()
        """What is published in pieces has numbers without a gap."""
        self.is_durable = False

    async def publish(
        self, records: bytes, timeout: Seconds | None, demand: Demand, count: int = 1
    ) -> Outcome:
        target = self._target or await self._open()
        try:
            return await self._begin(target, records, count, timeout, demand)
        except NotFound:  # it was deleted; there may be another one of its name
            self.forget(target)
        return await self._begin(await self._open(), records, count, timeout, demand)

    async def publish_many(
        self, bodies: Sequence[bytes], timeout: Seconds | None, demand: Demand
    ) -> int:
        """In pieces that are on their way together; an error says how many were published before
        what has failed, and one token names all that is unknown."""
        deadline = Deadline(nanoseconds(timeout))
        target = self._target or await self._open()
        try:
            return await self._publish_pieces(target, bodies, deadline, demand)
        except NotFound as error:  # so were all behind it refused
            done = error.published
        self.forget(target)
        target = await self._open()
        return done + await self._publish_pieces(target, bodies[done:], deadline, demand)

    async def _publish_pieces(
        self, target: int, bodies: Sequence[bytes], deadline: Deadline, demand: Demand
    ) -> int:
        many, left = Many(), deadline.seconds_left()
        begun: list[Pending] = []
        too_large: MessageTooLarge | None = None
        with self._one_by_one:
            try:
                for piece in pieces(bodies):
                    records = plain_batch(piece)
                    begun.append(self._begin(target, records, len(piece), left, demand, many))
            except MessageTooLarge as error:
                too_large = error
        if begun:
            await Several(begun)
        if too_large is not None:
            too_large.published = sum(each.count for each in begun)
            raise too_large
        return len(bodies)

    def _begin(
        self,
        target: int,
        records: bytes,
        count: int,
        timeout: Seconds | None,
        demand: Demand,
        many: Many | None = None,
    ) -> Pending:
        with self._one_by_one:
            return self._session.begin(
                self._what, Verb.PUBLISH, target, 0, count, records, demand, waits=timeout,
                many=many,
            )  # fmt: skip

    async def _open(self) -> int:
        target = next(self._session.targets)
        body = asked(**{self._noun: self._name})
        try:
            made = await self._session.begin(self._what, Verb.PRODUCER, target, body=body)
        except Error:
            with suppress(ConnectionClosed):  # or the broker would keep for ever why it is not open
                self._session.begin(self._what, Verb.LEAVE, target)
            raise
        self.is_durable = bool(told(made.body).get("durable"))
        if not self._target:
            self._target = target
        else:  # somebody else was faster
            self._session.begin(self._what, Verb.LEAVE, target)
        return self._target

    def forget(self, target: int = 0) -> None:
        """Unless another thread has done so, and opened the next one."""
        if target in (0, self._target):
            target, self._target = self._target, 0
            if target:
                self._session.begin(self._what, Verb.LEAVE, target)


def pieces(bodies: Sequence[bytes]) -> list[Sequence[bytes]]:
    """So that none has many bytes, or too many messages."""
    found: list[Sequence[bytes]] = []
    start = size = 0
    for end, body in enumerate(bodies):
        if end > start and (end - start == BATCH or size + len(body) > PIECE_BYTES):
            found.append(bodies[start:end])
            start, size = end, 0
        size += len(body) + 64
    return [*found, bodies[start:]] if start < len(bodies) else found
