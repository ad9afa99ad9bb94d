"""Random blows to the brokers of a cluster under load: each message is consumed once.

Brokers are killed, stand still and are stopped; consumers come and go; everybody publishes.  More
than in `make test`: CLUSTER_SEEDS=1,2,3 CLUSTER_BLOWS=20.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread

import pytest

import shmbroker
from shmbroker import Empty, QueueFull
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_redistribution import started

SEEDS = [int(each) for each in os.environ.get("CLUSTER_SEEDS", "1").split(",")]
BLOWS = int(os.environ.get("CLUSTER_BLOWS", "6"))
NAMES = ("east", "west", "north")
TOGETHER = 16
"""Messages that are published before it is asked whether they are confirmed."""


@dataclass
class Load:
    """Programs in shared memory, on all hosts."""

    cluster: Cluster
    is_over: Event = field(default_factory=Event)
    published: list[bytes] = field(default_factory=list)
    consumed: list[bytes] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)

    def begin(self, work: object, *given: object) -> None:
        def run() -> None:
            try:
                work(*given)  # type: ignore[operator]
            except BaseException as error:
                self.errors.append(error)
                raise

        self.threads.append(Thread(target=run, daemon=True))
        self.threads[-1].start()

    def publish(self, name: str) -> None:
        """What is published is in shared memory, so it counts, also before it is confirmed."""
        number = 0
        with shmbroker.connect(f"shm://{self.cluster.vhosts[name]}", name="producer") as broker:
            queue = broker.queue("orders")
            while not self.is_over.is_set():
                body = b"%s %d" % (name.encode(), number)
                with suppress(QueueFull):
                    queue.publish(body, confirm="shm", timeout=0.1)
                    self.published.append(body)
                    number += 1
                if number % TOGETHER == 0:
                    self.is_over.wait(0.005)

    def consume(self, name: str, leaves: Event) -> None:
        with shmbroker.connect(f"shm://{self.cluster.vhosts[name]}", name="consumer") as broker:
            queue = broker.queue("orders")
            while not leaves.is_set():
                with suppress(Empty), queue.get(timeout=0.1) as message:
                    body = bytes(message.body)
                    message.ack()
                    self.consumed.append(body)


def blow(random: Random, cluster: Cluster) -> str:
    name = random.choice(NAMES)
    what = random.choice(("kill", "kill", "stop", "pause", "none"))
    if what == "kill":
        cluster[name].kill()
        time.sleep(random.uniform(0, 0.5))
        cluster[name].start().becomes("live")
    elif what == "stop":
        cluster[name].stop()
        time.sleep(random.uniform(0, 0.5))
        cluster[name].start().becomes("live")
    elif what == "pause":
        process = cluster[name].process
        assert process is not None
        process.stop()
        time.sleep(random.uniform(0, 2.0))
        process.go_on()
    return f"{what} {name}"


@pytest.mark.parametrize("mode", ["on-demand", "strict"])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_is_consumed_once(cluster: Cluster, seed: int, mode: str) -> None:
    random = Random(f"{seed} {mode}")
    started(cluster, *NAMES, mode=mode)
    load, told = Load(cluster), []
    consumers: dict[str, Event] = {}
    with ExitStack() as opened:
        for name in NAMES:
            broker = opened.enter_context(
                shmbroker.connect(f"shm://{cluster.vhosts[name]}", name="test")
            )
            broker.declare_queue(
                "orders", durable=True, redistribution_delay=0, max_deliveries=None, slots=1 << 15
            )
        opened.callback(load.is_over.set)
        for name in NAMES:
            load.begin(load.publish, name)
        for _ in range(BLOWS):
            name = random.choice(NAMES)
            if name in consumers:
                consumers.pop(name).set()
            else:
                consumers[name] = Event()
                load.begin(load.consume, name, consumers[name])
            time.sleep(random.uniform(0, 0.5))
            told.append(blow(random, cluster))
        load.is_over.set()
        for name in NAMES:
            if name not in consumers:
                consumers[name] = Event()
                load.begin(load.consume, name, consumers[name])
        late = time.monotonic() + PATIENCE
        while len(load.consumed) < len(load.published) and time.monotonic() < late:
            time.sleep(0.05)  # they are consumed in other threads
        time.sleep(0.3)  # one that is there twice comes, too
        for each in consumers.values():
            each.set()
        for thread in load.threads:
            thread.join(PATIENCE)
    assert not load.errors, (told, load.errors)
    twice = [body for body, times in Counter(load.consumed).items() if times > 1]
    lost = set(load.published) - set(load.consumed)
    assert (sorted(lost), twice) == ([], []), f"seed {seed}: {told}\n{cluster.story()}"
    assert set(load.consumed) == set(load.published)
