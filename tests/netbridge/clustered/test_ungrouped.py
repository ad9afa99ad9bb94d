"""What lacks at queues of message groups is told by doctor, where there is a grouping handler."""

from __future__ import annotations

from contextlib import suppress

from shmbroker import Broker, Empty
from shmbroker.ipc.queue.grouped import ROUTES, SEPARATOR, TIMEOUT
from shmbroker.netbridge.clustered.ungrouped import findings
from tests.cli.command import Shell


def test_queues_without_groups_and_without_a_consumer(broker: Broker) -> None:
    with_groups = [broker.declare_queue(each, groups=True) for each in ("orders", "consumed")]
    with suppress(Empty):
        with_groups[1].get(timeout=0)
    for name in ("flat", "forgotten", "other"):
        broker.declare_queue(name)
    assert list(findings(broker)) == [], "groups are of this node alone"
    routes = broker.declare_queue(ROUTES, last_value=True)
    routes.publish(b"5000", key=TIMEOUT)
    for name in ("orders", "flat", "forgotten"):
        routes.publish(b"$sf.town.00", key=f"{name}{SEPARATOR}anna")
    routes.publish(b"", key=f"forgotten{SEPARATOR}anna")  # its route has ended
    found = {each.subject: each for each in findings(broker)}
    of = "queue {!r} of vhost {!r}".format
    assert found.keys() == {of("orders", broker.vhost), of("flat", broker.vhost)}
    assert found[of("flat", broker.vhost)].severity == "warning"
    assert "without groups=True" in found[of("flat", broker.vhost)].problem
    assert "no consumer at this node" in found[of("orders", broker.vhost)].problem
    told = Shell(broker.vhost)("doctor", "--json").json
    assert found.keys() <= {each["subject"] for each in told}
