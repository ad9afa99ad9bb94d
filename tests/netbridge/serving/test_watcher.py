"""What a program subscribes to: the queue waits for it, as long as it subscribes."""

from __future__ import annotations

from typing import Any, cast

import shmbroker
from shmbroker.netbridge.serving.served import Served
from shmbroker.netbridge.serving.watcher import Watcher


def test_what_comes_back_behind_its_end_moves_no_gate_of_another(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        queue.publish_many([b"x"] * 3)
        fields = {"queue": "q", "start": "earliest"}
        watcher = Watcher(cast("Served", None), 1, broker, fields, None)
        while watcher._next() is not None:
            pass
        place = the_gate(queue)
        watcher.close()
        other = broker.subscribe("q", start="earliest")
        assert the_gate(queue) == place, "it has the same one"
        watcher.seen([0, 1, 2])
        assert the_gate(queue) == place
        assert other.get(timeout=60).position == 0


def the_gate(queue: Any) -> tuple[int, int]:
    """Which it is, and where it stands."""
    (gate,) = queue.gates()
    return gate.index, gate.position
