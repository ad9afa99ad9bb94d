"""Mode 3: what no binding here takes is published there."""

from __future__ import annotations

import pytest

from shmbroker import Unroutable
from tests.netbridge.networked.conftest import Brokers
from tests.netbridge.transferred.conftest import add, bound, drained, forwarded, got


@pytest.mark.parametrize("kind", ["direct", "topic"])
def test_it_goes_there_only_while_nothing_is_bound_here(brokers: Brokers, kind: str) -> None:
    add(brokers, "far").start().becomes("live")
    add(brokers, "near", {"name": "ask", "to": "far", "mode": "locator"}).start().becomes("live")
    near, far = brokers.at("near"), brokers.at("far")
    here, there = (bound(each, "ask", kind, key="price") for each in (near, far))
    ask = forwarded(brokers, near, "ask")
    assert ask.publish(b"0", key="price") == 1
    near.unbind("ask", "got", key="price")
    assert ask.publish(b"1", key="price", mandatory=True) == 1
    assert ask.publish(b"2", key="nobody", mandatory=True) == 1, "it is routed once it is forwarded"
    with near.transaction() as tx:
        tx.publish(ask, b"3", key="price")
    drained(brokers, near, "ask")
    near.bind("ask", "got", key="price")
    assert ask.publish(b"4", key="price") == 1, "nobody consumes, and it is bound"
    assert got(here, 2) == [0, 4]
    assert got(there, 2) == [1, 3]
    with pytest.raises(Unroutable):
        far.exchange("ask").publish(b"5", key="nobody", mandatory=True)


def test_two_that_ask_each_other_end(brokers: Brokers) -> None:
    for name, to in (("a", "b"), ("b", "a")):
        add(brokers, name, {"name": "ask", "to": to, "mode": 3}).start()
    for name in ("a", "b"):
        brokers[name].becomes("live")
        forwarded(brokers, brokers.at(name), "ask", "direct")
    brokers.at("a").exchange("ask").publish(b"0", key="nobody")
    for name in ("a", "b"):
        drained(brokers, brokers.at(name), "ask")
    queue = bound(brokers.at("b"), "ask", "direct", key="price")
    brokers.at("a").exchange("ask").publish(b"1", key="price")
    assert got(queue, 1) == [1], "the first one is nowhere"
