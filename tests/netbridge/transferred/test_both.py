"""Mode 4, both: what is published goes only there, and comes back; and service, mode 3 with the
exclusive bindings copied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from shmbroker import Broker
from tests.netbridge.networked.conftest import Brokers
from tests.netbridge.transferred.conftest import (
    add,
    agent_of,
    bound,
    drained,
    forwarded,
    got,
    subscribed,
)

KINDS: dict[str, dict[str, Any]] = {
    "topic": {"key": "eu.#"},
    "headers": {"arguments": {"land": "de"}},
    "fanout": {},
    "direct": {"key": "eu.de"},
}
SAID: dict[str, Any] = {"key": "eu.de", "properties": {"land": "de", "cups": 2}}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Brokers, Broker, Broker]]:
    with ExitStack() as opened:
        brokers = Brokers(tmp_path_factory.mktemp("two"), opened)
        add(brokers, "far").start().becomes("live")
        given = [{"name": each, "to": "far", "mode": "both"} for each in [*KINDS, "bounce"]]
        given += [{"name": "ask", "to": "far", "mode": "service"}]
        add(brokers, "near", *given).start().becomes("live")
        yield brokers, brokers.at("near"), brokers.at("far")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_exchange_and_unbinding(
    two: tuple[Brokers, Broker, Broker], kind: str
) -> None:
    brokers, near, far = two
    binding = KINDS[kind]
    here, there = (bound(each, kind, kind, kind, **binding) for each in (near, far))
    exchange = forwarded(brokers, near, kind)
    subscribed(brokers, far, kind, 1)
    exchange.publish(b"0", timeout=60, **SAID)
    with here.get(timeout=60) as message:
        assert (bytes(message.body), message.properties) == (b"0", SAID["properties"])
        message.ack()
    with near.transaction() as tx:
        tx.publish(exchange, b"1", **SAID)
    far.exchange(kind).publish(b"2", timeout=60, **SAID)
    assert sorted(got(here, 2)) == [1, 2], "each once"
    assert sorted(got(there, 3)) == [0, 1, 2], "what is published on each side"
    near.unbind(kind, kind, **binding)
    subscribed(brokers, far, kind, 0)
    exchange.publish(b"3", **SAID)
    assert got(there, 1) == [3]
    assert got(here, 0) == [], "nothing here took it when it was there"


def test_while_the_link_is_down_it_waits_and_comes_back_later(
    two: tuple[Brokers, Broker, Broker],
) -> None:
    brokers, near, far = two
    here, there = (bound(each, "bounce", "topic", "bounce", key="#") for each in (near, far))
    exchange = forwarded(brokers, near, "bounce")
    subscribed(brokers, far, "bounce", 1)
    link = agent_of(brokers, "bounce", "far", "both")
    brokers.order("near", "stop", link)
    subscribed(brokers, far, "bounce", 0)
    for each in range(50):
        assert exchange.publish(b"%d" % each, key="k", confirm="disk", timeout=60) == 1
    assert got(here, 0) == got(there, 0) == []
    brokers.order("near", "start", link)
    assert got(there, 50) == got(here, 50) == [*range(50)]
    drained(brokers, near, "bounce")


def test_a_service_is_here_or_there(two: tuple[Brokers, Broker, Broker]) -> None:
    brokers, near, far = two
    here = bound(near, "asked", "fanout", "ask.here")
    near.declare_exchange("ask", "direct")
    near.divert("ask", "asked", exclusive=True, key="price")
    near.bind("ask", "ask.here", "other")
    there = bound(far, "ask", "direct", "ask.there", key="stock")
    ask = forwarded(brokers, near, "ask")
    subscribed(brokers, far, "ask", 1)
    far.exchange("ask").publish(b"0", key="price")
    assert far.exchange("ask").publish(b"1", key="other") == 0, "that one is not exclusive"
    ask.publish(b"2", key="stock", mandatory=True)
    assert (got(here, 1), got(there, 1)) == ([0], [2])
    ask.publish(b"3", key="price")
    assert (got(here, 1), got(there, 0)) == ([3], [])
    near.undivert("ask", "asked", key="price")
    subscribed(brokers, far, "ask", 0)
    assert far.exchange("ask").publish(b"4", key="price") == 0


def test_a_ring_in_which_all_go_both_ways_gives_one_copy_each(brokers: Brokers) -> None:
    ways = {"a": "b", "b": "c", "c": "a"}
    for name, to in ways.items():
        add(brokers, name, {"name": "trade", "to": to, "mode": 4})
    for name in ways:
        brokers[name].start()
    for name in ways:
        brokers[name].becomes("live")
    queues = {name: bound(brokers.at(name), "trade", "topic", key="#") for name in ways}
    for name, to in ways.items():
        forwarded(brokers, brokers.at(name), "trade")
        subscribed(brokers, brokers.at(to), "trade", 1)
    for number, name in enumerate(ways):
        brokers.at(name).exchange("trade").publish(b"%d" % number, key="k")
    for queue in queues.values():
        assert sorted(got(queue, 3)) == [0, 1, 2]
    for name in ways:
        drained(brokers, brokers.at(name), "trade")
