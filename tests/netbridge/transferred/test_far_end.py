"""What another broker says it joins and wants, right and wrong: never more than an error."""

from __future__ import annotations

import pytest

from shmbroker import Broker, Error
from shmbroker.ipc.exchange.own_binding import own_bindings
from shmbroker.netbridge.agent.said import Apart, Joined, Joins, Wanted
from shmbroker.netbridge.transferred.agents import answer
from shmbroker.netbridge.transferred.subscriber import binds, drop, drop_all, queue_of

QUEUE = queue_of(b"n" * 16, 1, "quotes")


def test_an_exchange_is_declared_or_it_says_why_not(broker: Broker) -> None:
    assert answer(broker, "far", Joins("quotes", "topic")) == Joined()
    assert answer(broker, "far", Joins("quotes", "topic")) == Joined()
    found = answer(broker, "far", Joins("quotes", "fanout"))
    assert found == Apart("exchange 'quotes' is fanout here, and topic at far")
    for wrong in (Joins("a/b", "topic"), Joins("x", "round"), Joins("$x", "topic"),
                  Joins("\x01", "topic")):  # fmt: skip
        assert isinstance(answer(broker, "far", wrong), Apart)
    assert [each.name for each in broker.exchanges()] == ["quotes"]


def test_bindings_are_those_that_are_wanted(broker: Broker) -> None:
    broker.declare_exchange("quotes", "topic")
    broker.declare_queue(QUEUE, slots=16)  # without a store none pages
    wide, narrow = Wanted("k", b"\x81\xa1a\xd2\x00\x00\x00\x01", True), Wanted("k", b"", False)
    for wanted in ({wide, narrow}, {wide}, {narrow}, {wide}, set()):
        for _ in range(2):
            binds(broker, QUEUE, "quotes", 8, frozenset(wanted))
            found = {(each.key, each.matches_any) for each in own_bindings(broker)}
            assert found == {(each.key, each.matches_any) for each in wanted}
    drop(broker, QUEUE)
    drop(broker, QUEUE)
    drop_all(broker)


@pytest.mark.parametrize("arguments", [b"\xc1", b"\x90", b"\x81", b"\x81\xa1a\xa5x", b"\x91" * 448])
def test_arguments_that_are_none_are_an_error(broker: Broker, arguments: bytes) -> None:
    broker.declare_exchange("quotes", "headers")
    broker.declare_queue(QUEUE, slots=16)
    with pytest.raises(Error):
        binds(broker, QUEUE, "quotes", 8, frozenset({Wanted("", arguments, False)}))
    with pytest.raises(Error):
        binds(broker, QUEUE, "quotes", 8, frozenset({Wanted("k" * 1000, b"", False)}))
    with pytest.raises(Error):
        binds(broker, QUEUE, "gone", 8, frozenset({Wanted("k", b"", False)}))
