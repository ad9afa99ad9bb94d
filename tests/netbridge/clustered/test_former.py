"""A broker is started again with another file: what its cluster has left is of no cluster any more,
or it carries nothing for that one."""

from __future__ import annotations

import pytest

from shmbroker import Broker
from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own, own_bindings
from shmbroker.netbridge.clustered.stand_ins import stand_in
from shmbroker.netbridge.clustered.topics import TopicBindings
from shmbroker.netbridge.clustered.towards import towards
from tests.netbridge.clustered.conftest import PASSWORD, Cluster
from tests.netbridge.clustered.test_balancing import on_their_way, sets_in
from tests.netbridge.clustered.test_grouping import HAS, has_handler
from tests.netbridge.clustered.test_redistribution import at
from tests.support.until import until

HANDLER = {"grouping__mine__type": "local", "grouping__mine__timeout": "30s"}
CARRIES: dict[str, object] = {
    "cluster__town__max_hops": 1, "cluster__town__message_load_balancing": "strict",
}  # fmt: skip
KEYS = (
    *(f"cluster__town__{key}" for key in ("connector", "user", "password", "static-connectors",
                                          "max-hops", "retry-interval")),
    "connectors__east__uri", "connectors__alone__uri", "link-defaults__heartbeat-interval",
)  # fmt: skip
NO_CLUSTER: dict[str, object] = dict.fromkeys(KEYS)
NO_NETWORK: dict[str, object] = {
    **NO_CLUSTER, "acceptors__town__uri": None, "acceptors__town__roles": None,
}  # fmt: skip
FOR_PROGRAMS: dict[str, object] = {
    **NO_CLUSTER, "acceptors__town__roles": ["client"],
    "credentials__apps__password": PASSWORD, "credentials__apps__role": "client",
}  # fmt: skip


@pytest.mark.parametrize(
    "then", [{}, NO_NETWORK, FOR_PROGRAMS], ids=["max-hops = 0", "no network", "no cluster"]
)
def test_what_is_published_stays_here(cluster: Cluster, then: dict[str, object]) -> None:
    for name, more in (("east", HANDLER), ("west", {})):
        cluster.add(name, **CARRIES, **more).start().becomes("live")
    cluster.sees("east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        for broker in (east, west):
            broker.declare_exchange("news", "topic")
            broker.declare_queue("orders", durable=True)
        west.declare_queue("there", durable=True)
        for queue in ("there", "orders"):
            west.bind("news", queue, "#")
        east.declare_queue("grouped", **HAS).publish(b"", group="anna")
        until(lambda: sets_in(east) and len(own_bindings(east)) == 2)
        assert BINDING_HERE in {each.target for each in own_bindings(east)}
        cluster["west"].kill()
        cluster["east"].kill()
        waiting = on_their_way(east)
    cluster.add("alone", shares="east", **then).start().becomes("live")
    with at(cluster, "alone") as alone:
        until(lambda: not has_handler(alone))
        assert sets_in(alone) == 0
        assert own_bindings(alone) == set()
        orders, grouped = alone.queue("orders"), alone.queue("grouped")
        for _ in range(4):
            orders.publish(b"")
        alone.exchange("news").publish(b"", key="a", mandatory=False)
        grouped.publish(b"", group="bert")
        assert orders.statistics().depth == 4
        assert grouped.statistics().depth == 2
        assert on_their_way(alone) == waiting


def test_the_others_send_nothing_to_a_broker_that_takes_no_messages_any_more(
    cluster: Cluster,
) -> None:
    for name in ("east", "west"):
        cluster.add(name, **CARRIES).start().becomes("live")
    cluster.sees("east", "west")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        for broker in (east, west):
            broker.declare_exchange("news", "topic")
            broker.declare_queue("orders", durable=True)
        west.declare_queue("there", durable=True)
        for queue in ("there", "orders"):
            west.bind("news", queue, "#")
        until(lambda: sets_in(east) and len(own_bindings(east)) == 2)
        cluster["west"].kill()
        cluster.add("alone", shares="west").start().becomes("live")
        cluster.sees("east", "alone")
        until(lambda: not own_bindings(east) and not sets_in(east))
        orders = east.queue("orders")
        for _ in range(4):
            orders.publish(b"")
        assert east.exchange("news").publish(b"", key="a") == 0
        assert orders.statistics().depth == 4
        assert on_their_way(east) == 0
        told = cluster.copied("alone", lambda queues: ("orders", "east", False) in queues)
        assert "there" in {each["queue"] for each in told["queues"]}


def test_bindings_of_a_cluster_that_had_another_name_end(broker: Broker) -> None:
    broker.declare_exchange("news", "topic")
    node = bytes(range(16))
    names = [towards("city", node), towards("town", node), towards("town.old", node)]
    for name in (*names, stand_in("orders")):
        broker.declare_queue(name)
        target = BINDING_HERE if name == stand_in("orders") else 7
        bind_own(broker, OwnBinding("news", name, "#", b"", False, target))
    bindings = TopicBindings(broker, "town", print)
    assert bindings.leads_to() == {node}
    bindings.carries([], frozenset())
    assert {each.queue for each in own_bindings(broker)} == {names[1], stand_in("orders")}
    bindings.carries([], frozenset([node]))
    assert own_bindings(broker) == set()
