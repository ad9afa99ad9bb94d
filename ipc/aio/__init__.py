"""shmbroker for asyncio: the same verbs, awaitable.

    async with shmbroker.aio.connect("shm://demo") as broker:
        queue = await broker.declare_queue("orders")
        await queue.publish(b"hello")
        async with queue.get(timeout=1) as message:
            print(message.body)

Everything is tried at once, in the loop's own thread.  What has to wait leaves word with one thread
of the connection, which sleeps in the kernel on the bells of all queues that somebody waits for and
then wakes one coroutine, which tries again.  So nothing is ever taken for a coroutine that may be
cancelled: cancelling at any moment loses no message.

What never waits is not awaited: a message's verbs (ack, give_back, reject), get_nowait and
publish_nowait; consume, subscribe and loan give what `async for` and `async with` want.
A broker belongs to the loop in which it was opened.

What cancelling leaves: of publish_many, and of publishing to an exchange, those messages that had
found room; of a commit that waits for room, nothing; a loan that waits for room is dropped.
"""

from __future__ import annotations

from shmbroker.ipc.aio.broker import Broker, connect
from shmbroker.ipc.aio.consumer import Consumer
from shmbroker.ipc.aio.durable import DurableProducer, DurableQueue
from shmbroker.ipc.aio.exchange import Exchange
from shmbroker.ipc.aio.loan import Loan
from shmbroker.ipc.aio.named_subscription import NamedSubscription
from shmbroker.ipc.aio.producer import Producer
from shmbroker.ipc.aio.queue import Queue
from shmbroker.ipc.aio.subscription import Subscription
from shmbroker.ipc.aio.transaction import Transaction
from shmbroker.ipc.aio.transaction_queue import TransactionQueue

__all__ = [
    "Broker",
    "Consumer",
    "DurableProducer",
    "DurableQueue",
    "Exchange",
    "Loan",
    "NamedSubscription",
    "Producer",
    "Queue",
    "Subscription",
    "Transaction",
    "TransactionQueue",
    "connect",
]
