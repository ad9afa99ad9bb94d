"""What a live member cannot repair now is repaired when it can be."""

from __future__ import annotations

from pathlib import Path

from tests.ipc.instance.test_pair import eventually
from tests.ipc.instance.test_repairing import is_there
from tests.netbridge.replicated.conftest import Made
from tests.support.holding import holding
from tests.support.repairing import in_change


def test_a_live_member_goes_on_with_repairs(node: Made, tmp_path: Path) -> None:
    """Somebody stands still who has the lock of the catalog."""
    two = node().up()
    vhost = two.vhosts["a"]
    broker = two.connected("a")
    held = broker.declare_queue("held")
    held.publish(b"a")
    with holding(f"shm://{vhost}", ["held"], tmp_path) as holder, in_change(vhost):
        holder.kill()
        two.logs("a", "warning")
    assert "is a participant stopped?" in two["a"].why("warning")
    eventually(lambda: not is_there(broker, "holder"))
    assert held.receive(timeout=0) == b"a"
    assert two["a"].status.state == "live"
