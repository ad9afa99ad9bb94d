"""What is copied from queue to queue, and the moment that the journaler looks for."""

from __future__ import annotations

from pathlib import Path

from shmbroker import Broker
from shmbroker.core.layout import TRANSACTIONS_CLOSED_AT
from tests.ipc.broker.test_durable_bell import word
from tests.support.host import PATIENCE, journaling


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
