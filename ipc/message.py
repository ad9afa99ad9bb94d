"""A message that we have taken and not yet dealt with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import REVOKED
from shmbroker.core.layout import DELIVERIES_MASK, DELIVERIES_SHIFT
from shmbroker.ipc._native import lib
from shmbroker.ipc.errors import DeliveryRevoked

if TYPE_CHECKING:
    from types import TracebackType

_ack = lib.sb_port_ack
_give_back = lib.sb_port_give_back


class Message:
    """Acknowledged on a clean exit of `with`, given back on an exception.

    What C knows of it lies in a structure that comes from the port's spare ones and returns there
    when the message is dealt with: making one anew costs more than taking a message.
    """

    __slots__ = ("_arena", "_message", "_port", "_spare")

    def __init__(self, port: Any, message: Any, arena: Any, spare: list[Any]) -> None:
        self._port = port
        self._message = message
        self._arena = arena
        self._spare = spare

    @property
    def view(self) -> memoryview:
        """The body where it lies: valid until the message is acknowledged or given back."""
        message = self._message or self._dealt_with()
        start = message.offset
        return memoryview(self._arena)[start : start + message.length].toreadonly()

    @property
    def body(self) -> bytes:
        """A copy of the body."""
        message = self._message or self._dealt_with()
        start = message.offset
        copied: bytes = self._arena[start : start + message.length]
        return copied

    @property
    def position(self) -> int:
        position: int = (self._message or self._dealt_with()).position
        return position

    @property
    def deliveries(self) -> int:
        """How often it was delivered before."""
        word: int = (self._message or self._dealt_with()).word
        return (word >> DELIVERIES_SHIFT) & DELIVERIES_MASK

    def ack(self) -> None:
        """The message is dealt with; raises DeliveryRevoked if it is no longer ours."""
        message = self._message or self._dealt_with()
        self._message = None
        code = _ack(self._port, message)
        self._spare.append(message)
        if code == REVOKED:
            raise self._revoked(message)

    def give_back(self) -> None:
        """Let somebody else have it; raises DeliveryRevoked if it is no longer ours."""
        message = self._message or self._dealt_with()
        self._message = None
        code = _give_back(self._port, message)
        self._spare.append(message)
        if code == REVOKED:
            raise self._revoked(message)

    def _dealt_with(self) -> Any:
        raise DeliveryRevoked("this message was acknowledged or given back before")

    def _revoked(self, message: Any) -> DeliveryRevoked:
        return DeliveryRevoked(
            f"message {message.position}: the delivery was revoked; somebody else may have it"
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
