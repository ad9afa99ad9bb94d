"""A message that was taken in a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.ipc._taken import take
from shmbroker.ipc.message.message import Message

if TYPE_CHECKING:
    from shmbroker.ipc.transaction.transaction import Transaction


class TransactionMessage(Message):
    """A message whose `ack` counts at commit; on rollback it is given back in place.

    What else is done with it is done at once.  `body` may be read after ack() as well.
    """

    __slots__ = ("_transaction", "body")

    _transaction: Transaction
    body: bytes

    @classmethod
    def of(cls, transaction: Transaction, taken: Message) -> TransactionMessage:
        """The same message; from now on this one gives it back when it is dropped."""
        copied = taken.body
        made = take(cls, taken._queue, taken._kept, taken._in_hand)
        taken._in_hand = 0
        made.body = copied
        made._transaction = transaction
        return made

    def ack(self) -> None:
        """The message is dealt with at commit; raises DeliveryRevoked if it is no longer ours."""
        self._transaction.ack(self)
