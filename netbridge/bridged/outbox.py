"""What a bridge with a filter or a transformer ships: a queue of its own.

    queue ──► filter ──► transformer ──► $bridge.NAME.QUEUE ──► link

A message goes there in a transaction.  What the filter does not take stays in the queue, and others
may take it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import (
    ArenaFull,
    ConnectionClosed,
    Empty,
    Error,
    InvalidArgument,
    MessageTooLarge,
    NotFound,
    QueueFull,
)
from shmbroker.ipc.connection.broker import Broker, connect
from shmbroker.ipc.queue.moving import Passed, changes, pass_over
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.bridged.transformer import Transformer, made
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.carrier.sleeper import ANY, ROOM
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.plan.bridge import OUTBOX, outbox_of

if TYPE_CHECKING:
    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.transaction.transaction import Transaction

SLOTS: Final = 1024
"""What is changed already and waits for the link; the rest waits in the queue."""
TOGETHER: Final = 64
"""Messages of a transaction."""
AGAIN_SECONDS: Final = 1.0
"""When it is looked anew: a queue that is missing, and what came back without being published."""
Tell = Callable[[Mapping[str, Any]], None]


class Outbox(Closable):
    def __init__(
        self, thread: NetworkThread, vhost: str, bridge: str, queue: str, selector: str | None,
        transformer: str | None, tell: Tell,
    ) -> None:  # fmt: skip
        """Unusable: the transformer is not to be had."""
        self._transformer = None if transformer is None else Transformer(transformer)
        self._thread, self._tell = thread, tell
        self._bridge, self._queue, self._selector = bridge, queue, selector
        self._is_closed = False
        self._failure: type[Error] | None = None
        """Of which it has told, as long as it holds."""
        self._in_hand: Message | None = None
        """For what was made of it there is no room.  *Not given back*: each time would count as a
        delivery, and a queue allows some of them."""
        self._news = threading.Event()
        self._broker: Broker = connect(f"shm://{vhost}", name=f"bridge {bridge}"[:56])
        self._worker = threading.Thread(target=self._run, name=f"bridge {bridge}", daemon=True)
        self._worker.start()

    def close(self) -> None:
        """What is in its queue stays there for the link, or for `bring_back`."""
        self._is_closed = True
        self._news.set()
        self._worker.join()
        self._in_hand = None  # it is given back
        self._broker.close()

    # --- in its thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            self._news.clear()
            try:
                self._some()
                self._failure = None
            except ConnectionClosed:  # the broker ends
                return
            except Error as error:
                self._in_hand = None
                if self._failure is not type(error):
                    self._failure = type(error)
                    self._fails("it cannot take from its queue", str(error))
                self._news.wait(AGAIN_SECONDS)

    def _some(self) -> None:
        """A batch; if there is none, it waits for one, and for room if there is no room."""
        source = serving(self._broker, self._queue)
        way = self._way(source)
        if self._transformer is None:
            passed = pass_over(source, way, TOGETHER, self._selector, 0, copies=False, flags=True)
        else:
            passed = self._changed(source, way, self._transformer)
        if passed.is_full and not passed.messages:
            self._wait(way, ROOM)
        elif not passed.messages:
            self._wait(source, passed.end)

    def _way(self, source: Queue) -> Queue:
        name = outbox_of(self._bridge, self._queue)
        try:
            return serving(self._broker, name)
        except NotFound:
            settings = source.explain()
            return self._broker.declare_queue(
                name, slots=SLOTS, durable=bool(settings["durable"].value), max_deliveries=None,
                dead_letter=settings["dead_letter"].value,
            )  # fmt: skip

    def _wait(self, queue: Queue, position: int) -> None:
        """Until it is worth trying again."""
        sleeper = self._thread.sleeper
        ticket = self._thread.ask(
            partial(sleeper.watch, queue._queue, position, ANY, self._news.set)
        )
        self._news.wait(AGAIN_SECONDS)
        self._thread.ask(partial(sleeper.forget, ticket, queue._queue, position, ANY))

    def _changed(self, source: Queue, way: Queue, transformer: Transformer) -> Passed:
        room, end = way.slots - changes(way).length_at_most, source.published
        messages, is_full = 0, room <= 0
        with self._broker.transaction() as tx, suppress(Empty):
            while messages < min(room, TOGETHER) and not is_full:
                message = self._in_hand or source.get(self._selector, timeout=0)
                is_full = not self._ships(tx, way, message, transformer)
                self._in_hand = message if is_full else None
                messages += not is_full
        return Passed(messages, is_full, end)

    def _ships(
        self, tx: Transaction, way: Queue, message: Message, transformer: Transformer
    ) -> bool:
        """False: there is no room, in the arena say."""
        try:
            body, options = made(message, transformer(message), datetime.now(UTC))
        except Exception as error:  # noqa: BLE001  # the user's own, which may raise anything
            self._rejects(message, transformer, error)
            return True
        try:
            tx.publish(way, body, **options)
        except (ArenaFull, QueueFull):
            return False
        except (InvalidArgument, MessageTooLarge, TypeError) as error:  # what it has made
            self._rejects(message, transformer, error)
        else:
            tx.ack(message)
        return True

    def _rejects(self, message: Message, transformer: Transformer, error: Exception) -> None:
        why = f"{transformer.name}: {type(error).__name__}: {error}"
        self._fails("its transformer fails", why)
        message.reject()

    def _fails(self, what: str, why: str) -> None:
        self._tell({"event": "bridge", "level": "warning", "link": self._bridge, "what": what,
                    "queue": self._queue, "detail": why})  # fmt: skip


def bring_back(broker: Broker, name: str) -> None:
    """What a bridge that is no more had selected goes to the end of its queue, as far as there is
    room; a queue without any is deleted."""
    way = broker.queue(name)
    source = serving(broker, name.removeprefix(OUTBOX).partition(".")[2])
    while pass_over(way, source, TOGETHER, None, 0, copies=False, flags=True).messages:
        pass
    if not len(way):
        broker.delete_queue(name, force=True)
