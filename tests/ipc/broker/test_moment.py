"""The journaler finds a moment between transactions, whatever else happens in the vhost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from shmbroker import Broker
from shmbroker.core.layout import TRANSACTIONS_CLOSED_AT
from shmbroker.ipc._native import lib
from tests.ipc.broker.test_durable_bell import word
from tests.support.host import PATIENCE, journaling

BINDINGS = 200


@contextmanager
def changing(broker: Broker) -> Iterator[None]:
    """The catalog changes all the time, as where many clients come and go."""
    catalog, is_over = lib.sb_catalog(broker._connection), Event()

    def changes() -> None:
        while not is_over.is_set():
            lib.sb_catalog_changed(catalog)

    thread = Thread(target=changes)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_it_confirms_while_clients_come_and_go(broker: Broker, tmp_path: Path) -> None:
    queue = broker.declare_queue("orders", durable=True)
    broker.declare_exchange("news", "topic")
    for each in range(BINDINGS):
        broker.bind("news", "orders", key=str(each))
    with journaling(broker.vhost, tmp_path), changing(broker):
        for _ in range(20):
            queue.publish(b"x", timeout=PATIENCE)
        with broker.transaction(timeout=PATIENCE) as transaction:
            transaction.publish(queue, b"committed")
        late = broker.declare_queue("late", durable=True)
        late.publish(b"x", timeout=PATIENCE)


def test_a_dead_letter_waits_at_the_commit_gate(broker: Broker, tmp_path: Path) -> None:
    """Else the journaler has no moment as long as many go from one durable queue to another."""
    with journaling(broker.vhost, tmp_path):
        broker.declare_queue("dead", durable=True)
        queue = broker.declare_queue("orders", durable=True, dead_letter="dead")
        queue.publish(b"x", timeout=PATIENCE)
        message = queue.get(timeout=PATIENCE)
    with word(broker.vhost, "transactions", TRANSACTIONS_CLOSED_AT) as closed:
        closed.value = 1  # by a journaler that died then
        message.reject()
        assert closed.value == 0, "it has waited, and goes on"
