"""The node that gets everything is lost on the way: another one gets the rest."""

from __future__ import annotations

import threading

from shmbroker.ipc.instance.leaving import SOMETHING_STAYED
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.clustered.test_scale_down import (
    LEAVES,
    at,
    bodies,
    numbers,
    started,
    stop,
    taken,
    until_shown,
)

TO_EAST_THEN_NORTH = {**LEAVES, "ha__scale_down__connectors": ["east", "north"]}


class Stopping:
    """The command, beside the test."""

    def __init__(self, cluster: Cluster) -> None:
        self._found: list[tuple[int, str]] = []
        self._thread = threading.Thread(target=lambda: self._found.append(stop(cluster)))
        self._thread.start()

    def ends(self) -> tuple[int, str]:
        self._thread.join()
        [found] = self._found
        return found


def test_another_node_gets_it_if_the_first_is_lost_before_anything_went(cluster: Cluster) -> None:
    cluster.looks_for = ("east", "north")
    started(cluster, "east", "north", **TO_EAST_THEN_NORTH)
    with at(cluster, "west") as west, at(cluster, "north") as north:
        here = west.declare_queue("orders", durable=True)
        transaction = west.transaction()
        transaction.publish(here, b"1")
        stopping = Stopping(cluster)
        until_shown(cluster, lambda told: told.get("state") == "waiting")
        cluster["east"].kill()
        until_shown(cluster, lambda told: told.get("to") == "north")
        transaction.commit()
        code, said = stopping.ends()
        assert code == 0, said + cluster.story()
        assert bodies(north.queue("orders")) == [b"1"]


def test_another_node_gets_what_is_not_on_its_way_to_the_first(cluster: Cluster) -> None:
    """That may be at the first one, or not: it stays for it."""
    cluster.looks_for = ("east", "north")
    started(cluster, "east", "north", **TO_EAST_THEN_NORTH)
    kept = {"durable": True, "max_deliveries": None}
    sent = numbers(0, 20_000)
    with at(cluster, "east") as east, at(cluster, "west") as west:
        east.declare_queue("orders", slots=64, **kept)  # so that it is in the middle
        here = west.declare_queue("orders", slots=32768, **kept)
        for body in sent:
            here.publish(body, confirm="shm")
        here.publish(b"later", deliver_after=3600.0)
        here.confirm()
    stopping = Stopping(cluster)
    until_shown(cluster, lambda told: told.get("messages", 0) >= 64)
    cluster["east"].kill()
    code, said = stopping.ends()
    assert code == 1, said
    assert "east is not reached, and messages wait for it" in said
    assert "went to east and north, the rest stays" in said
    with at(cluster, "north") as north:
        there = north.queue("orders")
        got = taken(there, there.statistics().depth)
        later = list(there.scheduled())
    assert len(got) > 5000
    assert got == sent[-len(got) :]
    assert cluster["west"].ends() == SOMETHING_STAYED
    cluster["east"].start().becomes("live")
    cluster["west"].start().becomes("live")
    cluster.sees("west", "east", "north")
    with at(cluster, "east") as east:
        assert taken(east.queue("orders"), len(sent) - len(got)) == sent[: -len(got)]
        assert stop(cluster)[0] == 0, cluster.story()
        assert not bodies(east.queue("orders"))
        later += east.queue("orders").scheduled()
    assert [each.body for each in later] == [b"later"]
    with at(cluster, "north") as north:
        assert not bodies(north.queue("orders"))
