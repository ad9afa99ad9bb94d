"""What is published through exchanges while a node leaves is in each queue once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress

import pytest

from shmbroker import Error, Queue
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_resumed import Stopping
from tests.netbridge.clustered.test_scale_down import (
    HOPS,
    TO_EAST,
    at,
    bodies,
    started,
    stop,
    until_shown,
)

QUEUE = {"durable": True, "slots": 1 << 18}
TOGETHER = 4
PAUSE_SECONDS = 0.005
"""Between so many messages: what is on its way is no more than what is published in a moment."""
BEFORE = 300
"""So many are published at each node before one of them leaves, and after it has left."""


class Publisher:
    """To an exchange, at one node, until its broker leaves or this ends."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self.sent: list[bytes] = []
        self._is_over = threading.Event()
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(Error), at(self._cluster, self._name) as broker:
            news = broker.exchange("news")
            while not self._is_over.wait(PAUSE_SECONDS):
                for _ in range(TOGETHER):
                    body = b"%s %d" % (self._name.encode(), len(self.sent))
                    news.publish(body, confirm="shm")
                    self.sent.append(body)
                with self._more:
                    self._more.notify_all()

    def until_more(self) -> None:
        with self._more:
            wanted = len(self.sent) + BEFORE
            assert self._more.wait_for(lambda: len(self.sent) >= wanted, PATIENCE)

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def others_lead_to(cluster: Cluster, name: str, ways: int) -> None:
    """Publishing at this node goes to so many queues."""
    late = time.monotonic() + PATIENCE
    with at(cluster, name) as broker:
        news = broker.exchange("news")
        while news.publish(b"", confirm="shm") != ways:
            assert time.monotonic() < late, cluster.story()
            time.sleep(0.05)  # nothing tells that a binding of another node is known here


def has_once(cluster: Cluster, queue: Queue, sent: set[bytes]) -> None:
    """In the end, and each of these."""
    late = time.monotonic() + PATIENCE
    while lost := sent - set(bodies(queue)):
        assert time.monotonic() < late, (
            f"{queue.name} lacks {len(lost)} of {len(sent)}: {sorted(lost)[:5]}\n{cluster.story()}"
        )
        time.sleep(0.1)  # nothing tells that all has arrived
    twice = [body for body, times in Counter(bodies(queue)).items() if times > 1 and body]
    assert not twice, f"{queue.name}: {len(twice)} of {len(sent)} twice, {sorted(twice)[:5]}"


@pytest.mark.parametrize("mode", ["off", "on-demand"])
def test_each_queue_has_each_message_once(cluster: Cluster, mode: str) -> None:
    """`old` leaves with `west`; `other` is at `east` all the time, and what crosses for it must
    not reach `old` there as well."""
    kind = {"cluster__town__message_load_balancing": mode}
    for name in ("east", "north"):
        cluster.add(name, **{**HOPS, **kind}).start().becomes("live")
    cluster.add("west", **{**TO_EAST, **kind}).start().becomes("live")
    names = ("east", "north", "west")
    for name in names:
        cluster.sees(name, *(each for each in names if each != name))
    with ExitStack() as opened:
        east, north, west = (opened.enter_context(at(cluster, each)) for each in names)
        for broker in (east, north, west):
            broker.declare_exchange("news", "fanout")
        west.bind("news", west.declare_queue("old", **QUEUE))
        other = east.declare_queue("other", **QUEUE)
        east.bind("news", other)
        for name in names:
            others_lead_to(cluster, name, 2)
        publishers = [Publisher(cluster, each) for each in names]
        for each in publishers:
            each.until_more()
        code, said = stop(cluster)
        assert (code, cluster["west"].ends()) == (0, 0), f"{said}\n{cluster.story()}"
        for each in publishers[:2]:
            each.until_more()
        for each in publishers:
            each.end()
        sent = [body for each in publishers for body in each.sent]
        for queue in (east.queue("old"), other):
            has_once(cluster, queue, set(sent))


def test_what_is_bound_while_it_waits_for_a_transaction_has_each_message_once(
    cluster: Cluster,
) -> None:
    """Programs work on meanwhile, at all nodes."""
    started(cluster, "east", "north", **TO_EAST)
    with ExitStack() as opened:
        east, north, west = (opened.enter_context(at(cluster, each))
                             for each in ("east", "north", "west"))  # fmt: skip
        for broker in (east, north, west):
            broker.declare_exchange("news", "fanout")
        transaction = west.transaction()
        transaction.publish(west.declare_queue("orders", **QUEUE), b"")
        stopping = Stopping(cluster)
        until_shown(cluster, lambda told: told.get("state") == "waiting")
        west.bind("news", west.declare_queue("late", **QUEUE))
        other = east.declare_queue("other", **QUEUE)
        east.bind("news", other)
        for name in ("north", "west"):
            others_lead_to(cluster, name, 2)
        publishers = [Publisher(cluster, each) for each in ("north", "west")]
        for each in publishers:
            each.until_more()
        transaction.commit()
        code, said = stopping.ends()
        assert code == 0, f"{said}\n{cluster.story()}"
        publishers[0].until_more()
        for each in publishers:
            each.end()
        sent = {body for each in publishers for body in each.sent}
        for queue in (east.queue("late"), other):
            has_once(cluster, queue, sent)
