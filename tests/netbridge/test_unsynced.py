"""Who passes messages on, and looks at one before it is synced, gets it as soon as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shmbroker import Broker
from shmbroker.netbridge.bridged import outbox
from shmbroker.netbridge.bridged.outbox import Outbox
from shmbroker.netbridge.carrier import fruitless
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.cluster.redistribution import Gives, To
from shmbroker.netbridge.clustered.giving import Giving
from shmbroker.netbridge.clustered.towards import towards
from shmbroker.netbridge.plan.bridge import outbox_of
from tests.ipc.paging.test_paging import eventually
from tests.support.host import journaling

NEVER = 1e6
THERE = b"n" * 16
SELECTOR = "kind = 'tea'"


def published(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=64, durable=True)
    for _ in range(3):
        orders.publish(b"x", properties={"kind": "tea"}, confirm="shm")


def noted(monkeypatch: pytest.MonkeyPatch, of: type, name: str) -> list[object]:
    """One for each call of this method that has ended."""
    found: list[object] = []
    method: Callable[..., Any] = getattr(of, name)

    def noting(*given: Any, **named: Any) -> Any:
        answer = method(*given, **named)
        found.append(answer)
        return answer

    monkeypatch.setattr(of, name, noting)
    return found


def test_another_node_whose_consumers_select(
    broker: Broker, vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fruitless, "ANEW_SECONDS", NEVER)
    looks = noted(monkeypatch, Giving, "_chosen")
    way = broker.declare_queue(towards("c", THERE), slots=64, durable=True)
    published(broker)
    with Giving(broker, "c", lambda _: None) as giving:
        giving.gives((Gives("orders", (To(THERE, (SELECTOR,)),)),))
        eventually(lambda: len(looks) >= 2)
        assert len(way) == 0
        with journaling(vhost, tmp_path / "journal"):
            eventually(lambda: len(way) == 3)


def test_a_bridge_with_a_filter(
    broker: Broker, vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "AGAIN_SECONDS", NEVER)
    waits: list[object] = []
    wait = Outbox._wait
    monkeypatch.setattr(
        Outbox, "_wait", lambda of, queue, at: (waits.append(queue), wait(of, queue, at))
    )
    published(broker)
    way = broker.declare_queue(outbox_of("plain", "orders"), slots=64, durable=True)
    with (
        NetworkThread(broker) as thread,
        Outbox(thread, vhost, "plain", "orders", SELECTOR, None, lambda _: None),
    ):
        eventually(lambda: len(waits) == 1)
        assert len(way) == 0
        with journaling(vhost, tmp_path / "journal"):
            eventually(lambda: len(way) == 3)
