"""A message that was taken in a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.ipc.message.message import Message

if TYPE_CHECKING:
    from shmbroker.ipc.transaction.transaction import Transaction


class TransactionMessage(Message):
    """A message whose `ack` counts at commit; on rollback it is given back in place.

    What else is done with it is done at once.  `body` may be read after ack() as well.
    """

    __slots__ = ("_transaction",)

    def __init__(self, transaction: Transaction, taken: Message) -> None:
        message, copied = taken._message, taken.body
        super().__init__(taken._source, message, taken._arena, taken._spare, copied)
        self._transaction = transaction
        taken._message = None  # one gives it back when it is dropped

    def ack(self) -> None:
        """The message is dealt with at commit; raises DeliveryRevoked if it is no longer ours."""
        self._transaction.ack(self)
