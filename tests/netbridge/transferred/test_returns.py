"""What nobody takes there comes back to whoever has published it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, Unroutable
from tests.netbridge.networked.conftest import Brokers
from tests.netbridge.transferred.conftest import add, agent_of, bound, forwarded, got, subscribed

MODES = {"all": "forward-all", "else": "forward-else", "both": "both", "busy": "forward-else"}
WISHES: list[dict[str, Any]] = [{"mandatory": True}, {"immediate": True}]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Brokers, Broker, Broker]]:
    with ExitStack() as opened:
        brokers = Brokers(tmp_path_factory.mktemp("two"), opened)
        add(brokers, "far").start().becomes("live")
        given = [{"name": name, "to": "far", "mode": mode} for name, mode in MODES.items()]
        add(brokers, "near", *given).start().becomes("live")
        yield brokers, brokers.at("near"), brokers.at("far")


def counted(brokers: Brokers, exchange: str, returned: int, unclaimed: int) -> None:
    link = agent_of(brokers, exchange, "far", MODES[exchange])
    brokers.until(
        lambda: brokers.link("near", link),
        lambda row: (row["returned"], row["unclaimed"]) == (returned, unclaimed),
    )


def consumes(queue: Queue) -> None:
    """From now on this connection is a consumer of it."""
    with suppress(Empty):
        queue.get(timeout=0)


@pytest.mark.parametrize("wished", WISHES, ids=lambda each: next(iter(each)))
@pytest.mark.parametrize("exchange", ["all", "else", "both"])
def test_it_comes_back_to_its_publisher(
    two: tuple[Brokers, Broker, Broker], exchange: str, wished: dict[str, Any]
) -> None:
    brokers, near, _ = two
    trade = forwarded(brokers, near, exchange, "direct")
    link = agent_of(brokers, exchange, "far", MODES[exchange])
    before = brokers.becomes("near", "up", link)
    properties = {"land": "de", **{f"p{each}": each for each in range(14)}}
    returned = near.returned()
    sent = trade.publish(b"9", key="nobody", properties=properties, priority=3, **wished)
    assert sent == 1, "it is routed once it is forwarded"
    with returned.get(timeout=60) as message:
        assert (bytes(message.body), message.key, message.priority) == (b"9", "nobody", 3)
        told = dict(message.properties)
        assert told.pop("returned.exchange") == exchange
        assert told.pop("returned.reason") == "no binding takes it there"
        assert told == properties
        message.ack()
    counted(brokers, exchange, before["returned"] + 1, before["unclaimed"])
    trade.publish(b"8", key="nobody")
    with near.transaction() as tx:
        tx.publish(trade, b"7", key="nobody", mandatory=True)
    assert got(returned, 1) == [7], "and nothing that was not wished"


def test_a_return_whose_publisher_is_gone_is_counted(two: tuple[Brokers, Broker, Broker]) -> None:
    brokers, near, far = two
    trade = forwarded(brokers, near, "all", "direct")
    link = agent_of(brokers, "all", "far", MODES["all"])
    before = brokers.link("near", link)
    brokers.order("near", "stop", link)
    with shmbroker.connect(f"shm://{brokers.vhosts['near']}") as gone:
        gone.returned()
        gone.exchange("all").publish(b"0", key="nobody", mandatory=True)
    with shmbroker.connect(f"shm://{brokers.vhosts['near']}") as silent:
        silent.exchange("all").publish(b"1", key="nobody", mandatory=True)
    brokers.order("near", "start", link)
    counted(brokers, "all", before["returned"] + 2, before["unclaimed"] + 2)
    there = bound(far, "all", "direct", "all", key="known")
    trade.publish(b"2", key="known", mandatory=True)
    assert got(there, 1) == [2], "it goes on behind what was returned"


def test_immediate_counts_queues_with_a_consumer_only(two: tuple[Brokers, Broker, Broker]) -> None:
    brokers, near, far = two
    here, there = (bound(each, "busy", "direct", "busy", key="k") for each in (near, far))
    busy, returned = forwarded(brokers, near, "busy"), near.returned()
    assert busy.publish(b"0", key="k", immediate=True) == 1, "to there, as nobody consumes here"
    assert (got(returned, 1), len(here), len(there)) == ([0], 0, 0), "nobody consumes there"
    consumes(there)
    assert busy.publish(b"1", key="k", immediate=True) == 1
    assert (got(there, 1), len(here)) == ([1], 0)
    consumes(here)
    assert busy.publish(b"2", key="k", immediate=True) == 1
    assert (got(here, 1), got(there, 0), got(returned, 0)) == ([2], [], [])


def test_what_comes_back_by_mode_4_is_not_returned(two: tuple[Brokers, Broker, Broker]) -> None:
    brokers, near, far = two
    here = bound(near, "both", "direct", "both", key="k")
    both, returned = forwarded(brokers, near, "both"), near.returned()
    subscribed(brokers, far, "both", 1)
    both.publish(b"0", key="k", mandatory=True)
    assert (got(here, 1), got(returned, 0)) == ([0], [])


def test_without_an_agent_it_is_unroutable_at_once(two: tuple[Brokers, Broker, Broker]) -> None:
    _, near, _ = two
    queue = bound(near, "plain", "direct", "plain", key="k")
    plain = near.exchange("plain")
    with pytest.raises(Unroutable, match="no queue with a consumer takes a message with key 'k'"):
        plain.publish(b"0", key="k", immediate=True)
    assert len(queue) == 0
    consumes(queue)
    assert plain.publish(b"1", key="k", immediate=True) == 1
