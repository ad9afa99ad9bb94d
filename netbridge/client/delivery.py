"""A message that a broker on another host holds for us until it is dealt with."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.base.errors import AlreadyDealtWith, Error, InvalidArgument
from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.group import group_of
from shmbroker.ipc.message.message import Message as Local
from shmbroker.ipc.message.properties import message_id_in
from shmbroker.ipc.message.serializer import Codec, value_of
from shmbroker.ipc.request.request import CORRELATION, REPLY_TO
from shmbroker.netbridge.client.record import copied
from shmbroker.netbridge.client.waiting import finished
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.netbridge.client.pending import Pending
    from shmbroker.netbridge.client.session import Session

DONE = {Verb.ACK: "acknowledged", Verb.GIVE_BACK: "given back", Verb.REJECT: "rejected"}


class Message:
    """Acknowledged on a clean exit of `with`, given back on an exception.

    `ack`, `give_back` and `reject` wait for the broker; with asyncio they need not be awaited.
    """

    __slots__ = (
        "__weakref__", "_codec", "_copy", "_dealt", "_delivery", "_generation", "_session", "queue",
    )  # fmt: skip
    __reduce__ = refuse_pickle

    def __init__(
        self,
        session: Session,
        queue: str,
        copy: CopiedMessage,
        generation: int,
        delivery: int,
        codec: Codec | None,
    ) -> None:
        self._session = session
        self._copy = copy
        self._generation, self._delivery = generation, delivery
        self._codec = codec
        self._dealt = ""
        self.queue = queue

    # --- what it is ---------------------------------------------------------------------------

    @property
    def body(self) -> bytes:
        return self._copy.body

    @property
    def view(self) -> memoryview:
        return memoryview(self._copy.body)

    @property
    def value(self) -> Any:
        return value_of(self._copy.body, self._codec)

    @property
    def key(self) -> str | None:
        return self._copy.key

    @property
    def properties(self) -> dict[str, Any]:
        return dict(self._copy.read())

    @property
    def message_id(self) -> str | bytes | None:
        return message_id_in(self._copy.read())

    @property
    def group(self) -> str | None:
        return group_of(self._copy.read())

    @property
    def reply_to(self) -> str | None:
        return self._copy.read().get(REPLY_TO)

    @property
    def correlation_id(self) -> str | None:
        return self._copy.read().get(CORRELATION)

    @property
    def position(self) -> int:
        return self._copy.position

    @property
    def deliveries(self) -> int:
        return self._copy.deliveries

    @property
    def redelivered(self) -> bool:
        return self._copy.deliveries > 0

    @property
    def priority(self) -> int | None:
        return self._copy.priority

    @property
    def expires_at(self) -> datetime | None:
        return self._copy.expires_at

    @property
    def published_at(self) -> int:
        return self._copy.published_at

    # --- what is done with it -----------------------------------------------------------------

    @property
    def is_in_hand(self) -> bool:
        return not self._dealt

    def ack(self) -> Any:
        return self._waits(self._settle(Verb.ACK))

    def give_back(self) -> Any:
        return self._waits(self._settle(Verb.GIVE_BACK))

    def reject(self) -> Any:
        return self._waits(self._settle(Verb.REJECT))

    def nack(self, *, requeue: bool = True) -> Any:
        return self.give_back() if requeue else self.reject()

    def reply(
        self,
        body: Any,
        *,
        properties: Mapping[str, Any] | None = None,
        timeout: Seconds | None = 1.0,
    ) -> Any:
        if self._dealt:
            self._was_dealt_with()
        if self.reply_to is None:
            raise InvalidArgument(f"message {self.position} asks for no reply")
        if self._codec is not None:
            body = self._codec.dumps(body)
        said = asked(
            queue=self.reply_to, correlation=self.correlation_id, body=copied(body),
            properties=dict(properties) if properties else None,
        )  # fmt: skip
        what = f"replying to message {self.position}"
        return self._waits(self._session.begin(what, Verb.REPLY, body=said, waits=timeout))

    def _settle(self, verb: Verb) -> Pending:
        """Begin it; nobody need wait."""
        if self._dealt:
            self._was_dealt_with()
        self._dealt = DONE[verb]
        body = asked(queue=self.queue, positions=[self.position], published=[self.published_at])
        return self._session.begin(
            f"message {self.position} of queue {self.queue!r}", verb,
            value=self._delivery, body=body, generation=self._generation,
        )  # fmt: skip

    def _ack_soon(self) -> None:
        """Of a loop: it does not wait for the answer."""
        self._dealt = DONE[Verb.ACK]
        self._session.ack_soon(
            self.queue, self._generation, self._delivery, (self.position, self.published_at)
        )

    def _waits(self, pending: Pending) -> Any:
        if not self._session.way.is_blocking:
            return pending
        finished(pending._wait())
        return None

    def _was_dealt_with(self) -> None:
        raise AlreadyDealtWith(f"this message was already {self._dealt}")

    def __enter__(self) -> Message:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._dealt:
            self._waits(self._settle(Verb.ACK if kind is None else Verb.GIVE_BACK))

    async def __aenter__(self) -> Message:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._dealt:
            await self._settle(Verb.ACK if kind is None else Verb.GIVE_BACK)

    def __del__(self) -> None:
        if not self._dealt and not self._session.is_closed:
            with suppress(Error):
                self._settle(Verb.GIVE_BACK)

    def __repr__(self) -> str:
        if self._dealt:
            return f"<Message of queue {self.queue!r}, {self._dealt}>"
        size = len(self.body)
        return f"<Message of queue {self.queue!r}, position {self.position}, {size} bytes>"


for each, told in vars(Local).items():
    ours = Message.__dict__.get(each)
    if isinstance(ours, property):
        setattr(Message, each, property(ours.fget, doc=told.__doc__))
