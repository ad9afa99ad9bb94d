"""Bindings by which an agent forwards, as those who publish meet them."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker import Broker, Empty, InvalidArgument, Unroutable
from shmbroker.core.layout import FORWARD_ALL, FORWARD_ELSE, FORWARD_ONLY
from shmbroker.ipc._native import lib
from shmbroker.ipc.exchange.binding import binding_for_c
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own, own_bindings, unbind_own
from shmbroker.ipc.sink.target import target_of_agent

MATCHING: dict[str, dict[str, Any]] = {
    "topic": {"key": "eu.#"},
    "headers": {"arguments": {"land": "de"}},
    "direct": {"key": "eu.de"},
}


def away(forwards: int) -> OwnBinding:
    return OwnBinding("trade", "away", "", b"", False, target_of_agent(8), forwards)


@pytest.fixture(params=MATCHING)
def broker(broker: Broker, request: pytest.FixtureRequest) -> Broker:
    """An exchange of each kind that looks at something, and a queue that wants some of it."""
    broker.declare_exchange("trade", request.param)
    for name in ("here", "away"):
        broker.declare_queue(name, slots=64)
    broker.bind("trade", "here", **MATCHING[request.param])
    return broker


def publish(broker: Broker, land: str) -> int:
    properties = {"land": land}
    return broker.exchange("trade").publish(b"1", key=f"eu.{land}", properties=properties)


def test_all_of_it_or_what_nothing_else_takes(broker: Broker) -> None:
    other = 1 if broker.exchange("trade").kind == "topic" else 0
    bind_own(broker, away(FORWARD_ALL))
    bind_own(broker, away(FORWARD_ALL))
    assert own_bindings(broker) == {away(FORWARD_ALL)}, "twice is once"
    assert (publish(broker, "de"), publish(broker, "fr")) == (2, 1 + other)
    unbind_own(broker, away(FORWARD_ALL))
    assert (publish(broker, "de"), publish(broker, "fr")) == (1, other)
    bind_own(broker, away(FORWARD_ELSE))
    assert (publish(broker, "de"), publish(broker, "fr")) == (1, 1)
    broker.exchange("trade").publish(b"1", key="us")
    assert len(broker.queue("away")) == 2 + (2 - other)
    broker.queue("away").purge()


def test_users_neither_see_nor_make_one(broker: Broker) -> None:
    bind_own(broker, away(FORWARD_ALL))
    assert [each.destination for each in broker.bindings()] == ["here"]
    made, _kept = binding_for_c("trade", "away", "", None, "all", "queue")
    made.match_any = FORWARD_ALL
    with pytest.raises(InvalidArgument, match="all of its arguments"):
        broker._check(lib.sb_bind(broker._connection, made), "binding")
    broker.unbind("trade", "here", **MATCHING[broker.exchange("trade").kind])
    broker.delete_exchange("trade")
    assert own_bindings(broker) == set(), "an exchange without users' bindings is in nobody's use"


def waiting(broker: Broker) -> dict[str, int]:
    found = {each: len(broker.queue(each)) for each in ("here", "away")}
    for each in found:
        broker.queue(each).purge()
    return found


def test_what_goes_there_only_is_in_no_queue_here(broker: Broker) -> None:
    bind_own(broker, away(FORWARD_ONLY))
    assert publish(broker, "de") == 1
    with broker.transaction() as tx:
        tx.publish(broker.exchange("trade"), b"1", key="eu.de", properties={"land": "de"})
    assert waiting(broker) == {"here": 0, "away": 2}
    unbind_own(broker, away(FORWARD_ONLY))
    assert (publish(broker, "de"), waiting(broker)) == (1, {"here": 1, "away": 0})


@pytest.mark.parametrize("forwards", [0, FORWARD_ALL, FORWARD_ELSE, FORWARD_ONLY])
def test_immediate_passes_over_queues_without_a_consumer(broker: Broker, forwards: int) -> None:
    trade, said = broker.exchange("trade"), {"key": "eu.de", "properties": {"land": "de"}}
    if forwards:
        bind_own(broker, away(forwards))
        assert trade.publish(b"1", immediate=True, **said) == 1
    else:
        with pytest.raises(Unroutable, match="no queue with a consumer"):
            trade.publish(b"1", immediate=True, **said)
    assert waiting(broker) == {"here": 0, "away": int(forwards != 0)}
    consumed = broker.queue("here")
    with pytest.raises(Empty):
        consumed.get(timeout=0)
    count = 2 if forwards == FORWARD_ALL else 1
    assert trade.publish(b"2", immediate=True, **said) == count
    assert waiting(broker) == {
        "here": int(forwards != FORWARD_ONLY), "away": int(forwards in (FORWARD_ALL, FORWARD_ONLY))
    }  # fmt: skip


def test_what_comes_back_is_for_the_queue_of_the_publisher(broker: Broker) -> None:
    """Nothing but messages for agents say it."""
    bind_own(broker, away(FORWARD_ALL))
    returned = broker.returned()
    assert broker.returned() is returned
    said: dict[str, Any] = {"key": "eu.de", "properties": {"land": "de"}}
    broker.exchange("trade").publish(b"1", mandatory=True, **said)
    with broker.queue("here").get(timeout=0) as message:
        assert message.properties == {"land": "de"}
        message.ack()
    with broker.queue("away").get(timeout=0) as message:
        assert {*message.properties} == {"land", "$mta"}
        message.ack()
