"""python -m shmbroker.perf.micro.cluster: what is published at one of four brokers of a cluster.

    program ──► queue ─┬─► its own ring
                       └─► three rings ═══ CURVE, loopback TCP ═══ the same queue at three others

Shares: how many of the messages each node has, at a rate that uses up no credit.  Rate: messages a
second from the first publish until all are where they go, against those that all go to one other
node, in turns.  Redistribution: a million messages wait, and then somebody consumes at another
node.  Joining: from the moment in which a node is live until a message that was published elsewhere
is there; static, and by multicast with the default period of 2 s.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from shmbroker import Broker, Empty, Queue, vhost
from shmbroker.perf.machine.machine import machine
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.micro.followed import BODY, waited_for
from shmbroker.perf.micro.instance import PATIENCE_S, Instance

NAMES: Final = ("east", "west", "north", "south")
PASSWORD: Final = "correct horse battery staple"
ARENA: Final = "1GiB"
SLOTS: Final = 1 << 20
BATCH: Final = 256
PACED: Final = 20_000
PACED_RATE: Final = 20_000
COUNT: Final = 1 << 18
"""Messages of a round."""
WAITING: Final = 1_000_000
SHARE_MAX: Final = 0.01
"""From a quarter."""
RATE_MIN: Final = 0.8
"""Of the rate to one other node."""
REDISTRIBUTED_MIN: Final = 500_000
STATIC_MAX_S: Final = 1.0
PERIOD_S: Final = 2.0


class Node(Instance):
    def __init__(
        self, folder: Path, name: str, means: Mapping[str, object], looks_for: Instance | None
    ) -> None:
        super().__init__(folder, name, instance__arena=ARENA)
        named = {each.name: each for each in (self, looks_for or self)}
        static = {} if means else {"cluster.town.static-connectors": list(named)}
        self.create(
            {
                "cluster.town.connector": name,
                "cluster.town.user": "town",
                "cluster.town.password": PASSWORD,
                "acceptors.town.uri": f"tcp://127.0.0.1:{self.port}",
                "acceptors.town.roles": ["cluster"],
                **{
                    f"connectors.{each.name}.uri": f"tcp://127.0.0.1:{each.port}"
                    for each in named.values()
                },
                **static,
                **means,
            }
        )


def by_multicast(name: str, port: int) -> dict[str, object]:
    given: dict[str, object] = {"cluster.town.discovery-group": "lan"}
    for table in ("broadcast", "discovery"):
        given |= {
            f"{table}.lan.group-address": "231.7.7.8",
            f"{table}.lan.group-port": port,
            f"{table}.lan.local-bind-address": "127.0.0.1",
        }
    return given | {"broadcast.lan.connector": name}


def consumes(queue: Queue) -> None:
    with suppress(Empty):
        queue.get(timeout=0).give_back()


def arrived(queues: Sequence[Queue]) -> list[int]:
    return [each.published for each in queues]


class Nodes:
    """Brokers of a cluster, and a program at each."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self._folder, self._opened = folder, opened
        self.nodes: dict[str, Node] = {}
        self.brokers: dict[str, Broker] = {}

    def add(self, name: str, means: Mapping[str, object]) -> float:
        """When it became live."""
        first = next(iter(self.nodes.values()), None)
        node = self.nodes[name] = Node(self._folder, name, means, first)
        self._opened.callback(vhost.delete, node.vhost, force=True)
        self._opened.enter_context(node.runs())
        lives_at = perf_counter()
        self.brokers[name] = self._opened.enter_context(node.connected())
        return lives_at

    def queues(
        self, name: str, *, consumed: Sequence[str], delay: float | None = None
    ) -> list[Queue]:
        """At each node; somebody consumes at some of them."""
        made = {
            each: broker.declare_queue(name, slots=SLOTS, redistribution_delay=delay)
            for each, broker in self.brokers.items()
        }
        for each in consumed:
            consumes(made[each])
        return list(made.values())

    def is_on_the_way(self) -> bool:
        here = next(iter(self.brokers.values()))
        return any(each.depth for each in here.queues() if each.name.startswith("$sf."))


def emptied(queues: Sequence[Queue]) -> None:
    for each in queues:
        while len(each):
            each.receive_many(4 * BATCH, timeout=PATIENCE_S)


def reaches(nodes: Nodes, queues: Sequence[Queue], wanted: Sequence[int]) -> None:
    """Until what is published at the first one goes to these, and to no other one."""

    def is_so() -> bool:
        before = arrived(queues)
        for _ in range(4 * len(queues)):
            queues[0].publish(BODY)
        waited_for(lambda: not nodes.is_on_the_way())
        found = [now - old for now, old in zip(arrived(queues), before, strict=True)]
        return [bool(each) for each in found] == [at in wanted for at in range(len(queues))]

    waited_for(is_so)
    emptied(queues)


def shares(queues: Sequence[Queue], count: int) -> list[float]:
    before, began = arrived(queues), perf_counter()
    for number in range(count):
        queues[0].publish(BODY)
        while (perf_counter() - began) * PACED_RATE < number:
            pass
    waited_for(lambda: sum(arrived(queues)) - sum(before) == count)
    found = [(now - old) / count for now, old in zip(arrived(queues), before, strict=True)]
    emptied(queues)
    return found


def rate(queues: Sequence[Queue], count: int) -> float:
    before, began = sum(arrived(queues)), perf_counter()
    for _ in range(count // BATCH):
        queues[0].publish_many([BODY] * BATCH, timeout=PATIENCE_S)
    waited_for(lambda: sum(arrived(queues)) - before == count // BATCH * BATCH)
    spent = perf_counter() - began
    emptied(queues)
    return count / spent


def redistributed(nodes: Nodes, count: int) -> float:
    """Messages a second, from the moment in which somebody consumes at another node."""
    here, there, *_ = nodes.queues("waits", consumed=(), delay=0.0)
    for _ in range(count // BATCH):
        here.publish_many([BODY] * BATCH, timeout=PATIENCE_S)
    count = here.statistics().depth
    began = perf_counter()
    consumes(there)
    waited_for(lambda: there.published >= count)
    spent = perf_counter() - began
    assert (here.statistics().depth, there.published) == (0, count), "some are there twice"
    return count / spent


def joined_s(nodes: Nodes, name: str, means: Mapping[str, object]) -> float:
    here = nodes.brokers["east"].declare_queue("joining", slots=SLOTS)
    consumes(here)
    lives_at = nodes.add(name, means)
    there = nodes.brokers[name].declare_queue("joining", slots=SLOTS)
    consumes(there)
    while not there.published:
        here.publish(BODY)
        time.sleep(0.001)
        if perf_counter() > lives_at + PATIENCE_S:
            raise TimeoutError(f"nothing comes to {name}")
    return perf_counter() - lives_at


@contextmanager
def nodes_in(folder: Path) -> Iterator[Nodes]:
    # The nodes end before their folders go.
    with tempfile.TemporaryDirectory(dir=folder) as work, ExitStack() as opened:
        yield Nodes(Path(work), opened)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--share", type=int, default=1, help="one such part of the messages")
    given = parser.parse_args(arguments)
    described, say, good = machine([]), sys.stdout.write, []
    processors = len(os.sched_getaffinity(0))
    say(f"{described['cpu']}, Linux {described['kernel']}, {processors} processors\n")
    with nodes_in(given.folder) as nodes:
        for name in NAMES[:3]:
            nodes.add(name, {})
        static = joined_s(nodes, NAMES[3], {})
        all_four, one = (nodes.queues(each, consumed=who) for each, who in
                         (("shared", NAMES), ("other", NAMES[1:2])))  # fmt: skip
        reaches(nodes, all_four, range(4))
        reaches(nodes, one, [1])
        found = shares(all_four, PACED // given.share)
        good.append(max(abs(each - 1 / len(NAMES)) for each in found) <= SHARE_MAX)
        say("shares of four nodes: " + ", ".join(f"{each:.2%}" for each in found) + "\n")
        rounds = [(rate(all_four, COUNT // given.share), rate(one, COUNT // given.share))
                  for _ in range(given.rounds)]  # fmt: skip
        total, alone = (median(each) for each in zip(*rounds, strict=True))
        good.append(total >= RATE_MIN * alone)
        say(f"to four nodes {total:,.0f}/s of 64 B, {total / alone:.2f} x to one other node"
            f" ({alone:,.0f}/s)\n")  # fmt: skip
        moved = redistributed(nodes, WAITING // given.share)
        good.append(moved >= REDISTRIBUTED_MIN)
        say(f"redistributed: {moved:,.0f}/s of {WAITING // given.share:,} that waited\n")
    with nodes_in(given.folder) as nodes:
        port = free_port()
        nodes.add("east", by_multicast("east", port))
        found_s = joined_s(nodes, "west", by_multicast("west", port))
    good += [static <= STATIC_MAX_S, found_s <= PERIOD_S]
    say(f"a node is used {static:.2f} s after it is live, and {found_s:.2f} s if it is found by"
        f" multicast\n")  # fmt: skip
    say("" if all(good) else "<- misses its target\n")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
