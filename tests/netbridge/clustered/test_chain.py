"""Brokers in a row, each with links to its neighbours only: messages go through those between."""

from __future__ import annotations

import subprocess
import sys
from threading import Thread

from shmbroker import Queue
from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc.exchange.own_binding import own_bindings
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.netbridge.broker.hosted import PROGRAM
from shmbroker.netbridge.clustered.too_far import findings
from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_balancing import consumes, in_turn, on_their_way
from tests.netbridge.clustered.test_redistribution import at, numbers, taken
from tests.support.until import until

NAMES = ("east", "middle", "west")


def in_a_row(cluster: Cluster, *names: str, hops: int, mode: str = "strict") -> None:
    """Each connects to the next one."""
    for name, following in zip(names, (*names[1:], names[-1]), strict=True):
        cluster.looks_for = (following,)
        cluster.add(
            name,
            cluster__town__max_hops=hops,
            cluster__town__allow_direct_connections_only=True,
            cluster__town__message_load_balancing=mode,
        ).start().becomes("live")
    for name in names:
        cluster.until(name, lambda told: len(told["nodes"]) == len(names))


def hops(cluster: Cluster, name: str) -> dict[str, tuple[str, int]]:
    nodes = Shell(cluster.vhosts[name])("cluster", "list", str(cluster[name].folder), "--json").json
    return {each["name"]: (each["state"], each["hops"]) for each in nodes["nodes"]}


def reaches(cluster: Cluster, near: str, far: str) -> None:
    cluster.copied(near, lambda queues: any(at == far for _, at, _ in queues))


def balanced(cluster: Cluster, here: Queue, there: Queue) -> None:
    """East publishes to both in turn, and what it has published for that was taken."""
    with at(cluster, "east") as east, at(cluster, "middle") as middle:
        in_turn(east, {"east": here, "west": there}, {"east": 5, "west": 5})
        until(lambda: on_their_way(middle) == 0)
    for queue in (here, there):
        taken(queue, queue.statistics().depth)


def test_messages_go_through_a_node_that_has_neither_queue_nor_consumer(cluster: Cluster) -> None:
    in_a_row(cluster, *NAMES, hops=2)
    with at(cluster, "east") as east, at(cluster, "middle") as middle, at(cluster, "west") as west:
        queues = {
            name: broker.declare_queue("orders", durable=True)
            for name, broker in (("east", east), ("west", west))
        }
        in_turn(east, queues, {"east": 10, "west": 10})
        in_turn(west, queues, {"east": 10, "west": 10})
        assert "orders" not in {each.name for each in middle.queues()}
        until(lambda: on_their_way(middle) == 0)
        for queue in queues.values():
            taken(queue, queue.statistics().depth)
        for body in numbers(0, 200):
            east.queue("orders").publish(body, key="k", properties={"kind": "coffee"})
        mine, other = taken(queues["east"], 100), taken(queues["west"], 100)
        assert sorted(map(int, mine + other)) == list(range(200))
        assert (mine, other) == (sorted(mine, key=int), sorted(other, key=int))
    assert hops(cluster, "east") == {"east": ("here", 0), "middle": ("up", 1), "west": ("up", 2)}
    assert cluster.logged("east", "no way") == []


def test_a_node_between_is_killed_and_what_was_published_meanwhile_comes_once_in_order(
    cluster: Cluster,
) -> None:
    in_a_row(cluster, *NAMES, hops=2, mode="strict")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here, there = (each.declare_queue("orders", durable=True) for each in (east, west))
        balanced(cluster, here, there)
        sending = Thread(target=lambda: [here.publish(each) for each in numbers(0, 1800)])
        sending.start()
        until(lambda: there.statistics().depth > 100)
        cluster["middle"].kill()
        sending.join()
        cluster["middle"].start().becomes("live")
        until(lambda: here.statistics().depth + there.statistics().depth == 1800)
        mine, other = taken(here, 900), taken(there, 900)
        assert [int(each) for each in other] == sorted(set(map(int, other)))
        assert sorted(map(int, mine + other)) == list(range(1800))


def test_topics_and_replies_come_through(cluster: Cluster) -> None:
    in_a_row(cluster, *NAMES, hops=2, mode="on-demand")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        for broker in (east, west):
            broker.declare_exchange("news", "topic")
        west.bind("news", west.declare_queue("sports"), "sports.#")
        until(lambda: any(each.target != BINDING_HERE for each in own_bindings(east)))
        east.exchange("news").publish(b"goal", key="sports.football")
        assert taken(west.queue("sports"), 1) == [b"goal"]
        asked = west.declare_queue("asked", durable=True)
        here = east.declare_queue("asked", durable=True)
        consumes(asked)
        in_turn(east, {"east": here, "west": asked}, {"east": 0, "west": 4})
        asked.purge()

        def answer() -> None:
            with asked.get(timeout=PATIENCE) as message:
                message.reply(b"five")
                message.ack()

        answering = Thread(target=answer)
        answering.start()
        assert bytes(here.request(b"two and three?", timeout=PATIENCE).body) == b"five"
        answering.join()


def test_nothing_goes_further_than_max_hops(cluster: Cluster) -> None:
    in_a_row(cluster, "east", "middle", "west", "north", hops=2)
    with at(cluster, "east") as east, at(cluster, "north") as north, at(cluster, "west") as west:
        for broker in (east, west, north):
            broker.declare_queue("orders", durable=True)
        queues = {name: broker.queue("orders") for name, broker in
                  (("east", east), ("west", west), ("north", north))}  # fmt: skip
        in_turn(east, queues, {"east": 10, "west": 10, "north": 0})
    assert hops(cluster, "east")["north"] == ("too far", 3)
    assert hops(cluster, "west")["east"] == ("up", 2)
    shell = Shell(cluster.vhosts["east"])
    checked = shell("check", "cluster", str(cluster["east"].folder))
    assert "too far: north" in checked.out
    [found] = findings(cluster["east"].folder, cluster.told("east"))
    assert found.problem.startswith("north: further away than max-hops")
    assert "max-hops of [cluster.town] to 3" in found.remedy
    assert list(findings(cluster["west"].folder, cluster.told("west"))) == []


def test_doctor_asks_the_broker_of_a_vhost_whether_some_are_too_far(cluster: Cluster) -> None:
    in_a_row(cluster, *NAMES, hops=1)
    cluster["east"].stop()
    command = [sys.executable, "-c", PROGRAM, "run", cluster["east"].folder.name]
    with subprocess.Popen(command, cwd=cluster["east"].folder.parent) as process:
        try:
            cluster["east"].becomes("live")
            cluster.until("east", lambda told: {each["name"] for each in told["nodes"]} == {*NAMES})
            until(lambda: too_far(cluster) == ["west"])
        finally:
            process.kill()


def too_far(cluster: Cluster) -> list[str]:
    told = Shell(cluster.vhosts["east"])("doctor", "--json").json
    folder = str(cluster["east"].folder)
    return [each["problem"].partition(":")[0] for each in told if folder in each["subject"]]


def test_another_way_is_taken_when_nothing_is_on_the_former_one(cluster: Cluster) -> None:
    """East learned of west by their middle; then west connects to east itself."""
    in_a_row(cluster, *NAMES, hops=2)
    ways = cluster.folder / "east" / "data" / "cluster-ways"
    with at(cluster, "east") as east, at(cluster, "west") as west:
        here, there = (each.declare_queue("orders", durable=True) for each in (east, west))
        balanced(cluster, here, there)
        assert len(read_whole(ways)) == 1
        cluster["middle"].kill()  # while messages wait for it
        for body in numbers(0, 100):
            here.publish(body)
        assert on_their_way(east) == 50
    cluster["west"].stop()
    place = cluster["west"].folder / "shmbroker.toml"
    told = place.read_text()
    place.write_text(
        told.replace('static-connectors = ["west"]', 'static-connectors = ["east"]')
        + f'\n[connectors.east]\nuri = "tcp://127.0.0.1:{cluster.ports["east"]}"\n'
    )
    cluster["west"].start().becomes("live")
    cluster.until(
        "east",
        lambda told: (
            ("west", 1)
            in {(each["name"], each["hops"]) for each in told["nodes"] if each["state"] == "up"}
        ),
    )
    with at(cluster, "east") as east, at(cluster, "west") as west:
        assert on_their_way(east) == 50, "the middle may have some of them"
        cluster["middle"].start().becomes("live")
        until(lambda: west.queue("orders").statistics().depth == 50)
        until(lambda: read_whole(ways) == {})
        there = west.queue("orders")
        assert [int(each) % 2 for each in taken(there, 50)].count(1) in (0, 50)
