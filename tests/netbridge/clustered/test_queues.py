"""Brokers of a cluster know each other's queues, who takes from them, and bindings."""

from __future__ import annotations

import pytest

import shmbroker
from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import Cluster

TELLS: dict[str, object] = {"cluster__town__max_hops": 1, "cluster__town__address": "!town."}
"""All but what each node has for itself, `town.undeliverable`."""


def two(cluster: Cluster) -> None:
    for name in ("east", "west"):
        cluster.add(name, **TELLS).start().becomes("live")
    cluster.sees("east", "west")


def test_queues_and_consumers_are_known_elsewhere(cluster: Cluster) -> None:
    two(cluster)
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as broker:
        broker.declare_queue("orders", durable=True)
        cluster.copied("east", lambda queues: queues == {("orders", "west", False)})
        with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="taker") as taker:
            with pytest.raises(shmbroker.Empty):
                taker.queue("orders").get_nowait()
            cluster.copied("east", lambda queues: queues == {("orders", "west", True)})
            taker.declare_exchange("news", "topic")
            taker.bind("news", "orders", "sports.#")
            taker.declare_exchange("files", "headers")
            taker.bind("files", "orders", arguments={"mark": b"\x00", "n": 1}, match="any")
        told = cluster.copied("east", lambda queues: queues == {("orders", "west", False)})
        [row] = told["queues"]
        assert (row["state"], row["durable"]) == ("up", True)
        headers, binding = told["bindings"]
        assert (headers["arguments"], headers["match"]) == ({"mark": "b'\\x00'", "n": 1}, "any")
        assert (binding["exchange"], binding["destination"]) == ("news", "orders")
        assert (binding["kind"], binding["key"], binding["name"]) == ("topic", "sports.#", "west")
        broker.delete_queue("orders")
    cluster.copied("east", lambda queues: queues == set())


def test_a_missing_node_keeps_what_it_told_and_tells_anew(cluster: Cluster) -> None:
    two(cluster)
    cluster.publishes("west", b"one")
    cluster.copied("east", lambda queues: {each[0] for each in queues} == {"orders"})
    cluster["west"].kill()
    cluster.sees("east", missing=("west",))
    told = cluster.copied("east", lambda queues: len(queues) == 1)
    assert [each["state"] for each in told["queues"]] == ["missing"]
    cluster["west"].start().becomes("live")
    cluster.sees("east", "west")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as broker:
        broker.declare_queue("bills")
    told = cluster.copied("east", lambda queues: len(queues) == 2)
    assert {each["state"] for each in told["queues"]} == {"up"}
    cluster["west"].stop()
    cluster.sees("east", missing=("west",))
    assert cluster.order("east", verb="forget", node="west") == ""
    cluster.copied("east", lambda queues: queues == set())


def test_the_successor_of_a_shared_store_tells_of_the_same_queues(cluster: Cluster) -> None:
    cluster.add("east", **TELLS).start()
    cluster.add("west", **TELLS).start().becomes("live")
    cluster.add("west2", "backup", shares="west", **TELLS).start().becomes("passive")
    cluster.publishes("west", b"one")
    cluster.copied("east", lambda queues: {each[:2] for each in queues} == {("orders", "west")})
    cluster["west"].kill()
    cluster.sees("east", "west2")
    cluster.copied("east", lambda queues: {each[:2] for each in queues} == {("orders", "west2")})


def test_the_command_line(cluster: Cluster) -> None:
    two(cluster)
    for name in ("east", "west"):
        cluster.publishes(name, b"one")
    cluster.copied("east", lambda queues: len(queues) == 2)
    shell, folder = Shell(cluster.vhosts["east"]), str(cluster["east"].folder)
    listed = [line.split() for line in shell("cluster", "queues", folder).lines]
    assert listed == [
        ["QUEUE", "NODE", "STATE", "DURABLE", "CONSUMED", "SELECTORS"],
        ["orders", "east", "here", "yes", "no", "-"],
        ["orders", "west", "up", "yes", "no", "-"],
    ]
    assert shell("cluster", "queues", folder, "--names").lines == ["orders"]
    assert shell("cluster", "queues", folder, "--json").json["bindings"] == []
    cluster["east"].stop()
    assert shell("cluster", "queues", folder).code == 1


def test_a_replicated_node_tells_of_its_queues_whoever_serves(cluster: Cluster) -> None:
    cluster.add("east", **TELLS).start()
    cluster.add_pair("west", **TELLS)
    cluster.starts("west")
    cluster.sees("east", "west")
    cluster.publishes("west", b"one")
    cluster.copied("east", lambda queues: {each[:2] for each in queues} == {("orders", "west")})
    cluster["west"].kill()
    cluster["west2"].becomes("live")
    cluster.copied("east", lambda queues: {each[:2] for each in queues} == {("orders", "west2")})
    with shmbroker.connect(f"shm://{cluster.vhosts['west2']}", name="test") as broker:
        broker.declare_queue("bills")
    cluster.copied("east", lambda queues: ("bills", "west2", False) in queues)


def test_a_cluster_is_for_some_addresses_only(cluster: Cluster) -> None:
    cluster.add("east", **TELLS).start().becomes("live")
    only = TELLS | {"cluster__town__address": "orders,news,!orders.local"}
    cluster.add("west", **only).start().becomes("live")
    cluster.sees("east", "west")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as broker:
        for name in ("stock", "orders.local", "news.paper", "orders.far"):
            broker.declare_queue(name)
        for name in ("stocks", "news"):
            broker.declare_exchange(name, "fanout")
            broker.bind(name, "orders.far")
        told = cluster.copied(
            "east",
            lambda queues: {each[0] for each in queues} >= {"news.paper", "orders.far"},
            exchanges=frozenset({"news"}),
        )
        assert {each["name"] for each in told["queues"]} == {"west"}
        assert {each["queue"] for each in told["queues"]} == {"news.paper", "orders.far"}
        assert {each["exchange"] for each in told["bindings"]} == {"news"}
