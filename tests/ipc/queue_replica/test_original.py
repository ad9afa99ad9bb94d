"""What is seen of originals, and when: a moment at which no transaction is half way."""

from __future__ import annotations

from pathlib import Path

import shmbroker
from shmbroker.ipc.broker.serving import Serving
from shmbroker.ipc.journal.end import End
from shmbroker.ipc.queue_replica.original import Originals
from tests.support.host import PATIENCE, journaling

NEVER = 1000.0
SOON = 0.05


def test_a_moment_waits_for_replicas_of_the_node(vhost: str, tmp_path: Path) -> None:
    """Their gates move in one queue after the other, long after the disk's: who looked between them
    would see half of a transaction."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queues = [broker.declare_queue(name, durable=True) for name in ("first", "second")]
        with (
            journaling(vhost, tmp_path / "journal") as journaler,
            End(journaler, "far", timeout=NEVER) as far,
            Originals(broker, room=1 << 16) as originals,
        ):
            for number, queue in enumerate(queues):
                originals.add(queue, number, 0)
            transaction = broker.transaction()
            for queue in queues:
                transaction.queue(queue.name).publish(b"whole")
            transaction.commit(confirm="disk", timeout=PATIENCE)
            assert originals.read() is None
            assert originals.is_held
            while not all(queue.confirmed == 1 for queue in queues):
                if far.read(SOON) is not None:
                    far.done(far.state().told)
            transaction.confirm(timeout=PATIENCE)
            found = originals.read()
            assert found is not None
            assert (found.messages, found.whole) == (2, True)


def test_what_is_confirmed_is_read_while_it_is_not_delivered(vhost: str, tmp_path: Path) -> None:
    """The lease of its broker has lapsed.  A message that the moment leaves out would be told as
    shown, and be passed over by the replica when it came with the next one."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        with journaling(vhost, tmp_path / "journal"), Originals(broker, room=1 << 16) as originals:
            originals.add(queue, 0, 0)
            queue.publish(b"confirmed", confirm="disk", timeout=PATIENCE)
            Serving(broker).until(0.0)
            found = originals.read()
            assert found is not None
            assert (found.messages, found.whole) == (1, True)
