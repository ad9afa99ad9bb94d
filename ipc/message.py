"""A message that we have taken and not yet dealt with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import REVOKED
from shmbroker.core.layout import DELIVERIES_MASK, DELIVERIES_SHIFT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.errors import DeliveryRevoked

if TYPE_CHECKING:
    from types import TracebackType

_ack = lib.sb_ack
_give_back = lib.sb_give_back
_buffer = ffi.buffer


class Message:
    """Acknowledged on a clean exit of `with`, given back on an exception."""

    __slots__ = ("_message", "_port")

    def __init__(self, port: Any, message: Any) -> None:
        self._port = port
        self._message = message

    @property
    def view(self) -> memoryview:
        """The body where it lies: valid until the message is acknowledged or given back."""
        return memoryview(_buffer(self._message.body, self._message.length)).toreadonly()

    @property
    def body(self) -> bytes:
        """A copy of the body."""
        message = self._message
        copied: bytes = _buffer(message.body, message.length)[:]
        return copied

    @property
    def position(self) -> int:
        position: int = self._message.position
        return position

    @property
    def deliveries(self) -> int:
        """How often it was delivered before."""
        word: int = self._message.word
        return (word >> DELIVERIES_SHIFT) & DELIVERIES_MASK

    def ack(self) -> None:
        """The message is dealt with; raises DeliveryRevoked if it is no longer ours."""
        if _ack(self._port, self._message) == REVOKED:
            raise self._revoked()

    def give_back(self) -> None:
        """Let somebody else have it; raises DeliveryRevoked if it is no longer ours."""
        if _give_back(self._port, self._message) == REVOKED:
            raise self._revoked()

    def _revoked(self) -> DeliveryRevoked:
        return DeliveryRevoked(
            f"message {self.position}: the delivery was revoked or dealt with before; "
            "somebody else may have the message"
        )

    def __enter__(self) -> Message:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.ack()
        else:
            self.give_back()
