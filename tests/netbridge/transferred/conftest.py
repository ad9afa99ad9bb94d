"""Brokers as processes on one host, with message transfer agents between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shmbroker import Broker, Exchange, Queue
from shmbroker.ipc.exchange.own_binding import own_bindings
from tests.netbridge.networked.conftest import DURABLE, Brokers, taken
from tests.support.runs import Run

FORWARD = "forward-all"


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with ExitStack() as opened:
        yield Brokers(tmp_path, opened)


def agents(*given: Mapping[str, object]) -> dict[str, object]:
    """Of a configuration; each has name, host and mode."""
    return {
        f"mta.{number}.{key.replace('_', '-')}": value
        for number, each in enumerate(given, 1)
        for key, value in ({"login": "site"} | dict(each)).items()
    }


def add(brokers: Brokers, name: str, *given: Mapping[str, object], **named: Any) -> Run:
    """A broker with these agents; of each of which `to` names the broker."""
    made = [
        {key: each[key] for key in each if key != "to"}
        | {"host": brokers.address(str(each["to"])).removeprefix("tcp://")}
        if "to" in each
        else dict(each)
        for each in given
    ]
    return brokers.add(name, settings=agents(*made), **named)


def agent_of(brokers: Brokers, exchange: str, to: str, mode: str = FORWARD) -> str:
    """The name of its link."""
    return f"{exchange}@{brokers.address(to).removeprefix('tcp://')} {mode}"


def bound(broker: Broker, exchange: str, kind: str, queue: str = "got", **binding: Any) -> Queue:
    """A durable queue that has what matches."""
    broker.declare_exchange(exchange, kind)
    made = broker.declare_queue(queue, **DURABLE)
    broker.bind(exchange, queue, **binding)
    return made


def forwarded(brokers: Brokers, broker: Broker, exchange: str, kind: str = "") -> Exchange:
    """Once an agent takes what is published to it."""
    if kind:
        broker.declare_exchange(exchange, kind)
    brokers.until(
        lambda: {each.exchange for each in own_bindings(broker)}, lambda found: exchange in found
    )
    return broker.exchange(exchange)


def subscribed(brokers: Brokers, there: Broker, exchange: str, count: int) -> Exchange:
    """Once so many bindings were copied there."""
    brokers.until(
        lambda: [each for each in own_bindings(there)
                 if each.exchange == exchange and each.queue.startswith("$mta:")],
        lambda found: len(found) == count,
    )  # fmt: skip
    return there.exchange(exchange)


def drained(brokers: Brokers, broker: Broker, exchange: str) -> None:
    """Nothing waits any more for an agent of this exchange."""
    names = [each.name for each in broker.queues() if each.name.startswith(f"$mta.{exchange}.")]
    assert names
    for queue in map(broker.queue, names):
        brokers.until(lambda queue=queue: queue.statistics().depth, lambda left: left == 0)


def got(queue: Queue, count: int) -> list[int]:
    """As many, in their order, and no more."""
    found = taken(queue, count)
    assert taken(queue, 1, patience=0.5) == [], "more than was published"
    return found
