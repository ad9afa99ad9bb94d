"""What a live cannot repair now does not end it, and is repaired when it can be."""

from __future__ import annotations

from pathlib import Path

import shmbroker
from shmbroker import Broker
from tests.ipc.instance.test_pair import eventually
from tests.support.holding import holding
from tests.support.repairing import in_change
from tests.support.runs import PATIENCE_SECONDS, Run

LOCKED = "is a participant stopped?"


def is_there(broker: Broker, name: str) -> bool:
    return any(each.name == name for each in broker.participants())


def test_a_live_goes_on(tmp_path: Path, vhost: str) -> None:
    """Somebody stands still who has the lock of the catalog, which every repair needs."""
    url = f"shm://{vhost}"
    run = Run(tmp_path / "one", vhost, "live").start().becomes("live")
    try:
        with shmbroker.connect(url) as broker:
            orders = broker.declare_queue("orders", durable=True)
            held = broker.declare_queue("held")
            held.publish(b"a")
            with holding(url, ["held"], tmp_path) as holder, in_change(vhost):
                holder.kill()
                eventually(lambda: any(LOCKED in line.get("why", "") for line in run.said()))
                orders.publish(b"confirmed", timeout=PATIENCE_SECONDS)
                assert run.status.state == "live", run.said()
                assert is_there(broker, "holder")
            eventually(lambda: not is_there(broker, "holder"))
            assert held.receive(timeout=0) == b"a"
    finally:
        run.kill()
