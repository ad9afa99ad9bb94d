"""Messages of a queue come from another broker to where somebody consumes."""

from __future__ import annotations

import pytest

from shmbroker import InvalidArgument
from tests.netbridge.networked.conftest import (
    DURABLE,
    Brokers,
    Two,
    consumes,
    publishes,
    started,
    taken,
)
from tests.support.trace import TRACE


@pytest.mark.parametrize("durable", [True, False])
def test_they_come_on_demand_in_order_and_whole(two: Two, durable: bool) -> None:
    name = f"orders.{durable}"
    there = two.far.declare_queue(name, durable=durable)
    here = two.near.declare_queue(name, durable=durable)
    fetched = two.brokers.link("near")["messages"]
    publishes(there, 0)
    there.publish(b"1", key="k", properties=TRACE, priority=3)
    assert taken(here, 1) == [0]
    with here.get(timeout=60) as message:
        assert (message.body, message.key, message.priority) == (b"1", "k", 3)
        assert dict(message.properties) == TRACE
        assert message.deliveries == 0, "it was not delivered before"
        message.ack()
    publishes(there, *range(2, 500))
    assert taken(here, 498) == [*range(2, 500)]
    assert len(there) == 0
    [ring] = [each for each in two.far.queues() if each.name.startswith("$link.")]
    two.brokers.until(lambda: len(two.far.queue(ring.name)), lambda left: left == 0)
    two.brokers.counts("near", fetched + 500)
    assert two.brokers.link("near")["peer"] == "far"


def test_nothing_comes_where_nobody_consumes_or_what_is_excluded(two: Two) -> None:
    for name in ("goes", "idle", "private.orders"):
        publishes(two.far.declare_queue(name, durable=True), 1)
        two.near.declare_queue(name, durable=True)
    consumes(two.near.queue("private.orders"))
    assert taken(two.near.queue("goes"), 1) == [1]
    assert [len(two.far.queue(each)) for each in ("idle", "private.orders")] == [1, 1]


def test_what_is_static_comes_without_a_consumer(two: Two) -> None:
    publishes(two.far.declare_queue("static.eu", durable=True), 1)
    here = two.near.declare_queue("static.eu", durable=True)
    two.brokers.until(lambda: len(here), lambda count: count == 1)


def test_a_link_counts_as_one_consumer_there(two: Two) -> None:
    """Two consumers here, one there: half of 30 messages each."""
    there, here = two.far.declare_queue("shared", durable=True), two.near.declare_queue("shared")
    consumes(there)
    consumes(here)
    consumes(two.brokers.at("near").queue("shared"))
    publishes(there, *range(30))
    two.brokers.until(lambda: len(here), lambda count: count == 15)
    found = taken(there, 15), taken(here, 15)
    assert sorted(found[0] + found[1]) == [*range(30)]
    assert len(here) == len(there) == 0


def test_without_duplex_nothing_goes_the_other_way(two: Two) -> None:
    for name in ("comes", "stays"):
        for each in (two.near, two.far):
            each.declare_queue(name, durable=True)
    consumes(two.far.queue("stays"))
    publishes(two.near.queue("stays"), 1)
    publishes(two.far.queue("comes"), 2)
    assert taken(two.near.queue("comes"), 1) == [2]
    assert len(two.near.queue("stays")) == 1


def test_a_consumer_that_left_while_the_link_was_down_gets_nothing(two: Two) -> None:
    for name in ("left", "other"):
        two.far.declare_queue(name, durable=True)
        two.near.declare_queue(name, durable=True)
    other = two.near.queue("other")
    leaves = two.brokers.at("near")
    consumes(leaves.queue("left"))
    publishes(two.far.queue("left"), 1)
    two.brokers.until(lambda: len(two.near.queue("left")), lambda count: count == 1)
    two.brokers.order("near", "stop")
    two.brokers.becomes("near", "stopped")
    leaves.close()
    publishes(two.far.queue("left"), 2)
    publishes(two.far.queue("other"), 3)
    consumes(other)
    assert len(other) == 0
    two.brokers.order("near", "start")
    assert taken(other, 1) == [3]
    assert (len(two.far.queue("left")), len(two.near.queue("left"))) == (1, 1)


def test_what_needs_all_messages_in_one_place_stays(two: Two) -> None:
    settings = {"values": {"last_value": True}, "grouped": {"groups": True}}
    for name, more in settings.items():
        two.far.declare_queue(name, **more).publish(b"1", key="k")
        two.near.declare_queue(name)
        consumes(two.near.queue(name))
    publishes(two.far.declare_queue("single"), 2)
    assert taken(two.near.declare_queue("single"), 1) == [2]
    assert [len(two.far.queue(each)) for each in settings] == [1, 1]


def test_what_is_refused_here_is_kept_there(two: Two) -> None:
    there = two.far.declare_queue("refused", **DURABLE)
    here = two.near.declare_queue("refused", when_full="fail", slots=4)
    consumes(here)
    publishes(there, *range(8))
    two.brokers.until(
        lambda: {each.name for each in two.far.queues()},
        lambda names: "links.undeliverable" in names,
    )
    dead = two.far.queue("links.undeliverable")
    two.brokers.until(lambda: len(dead), lambda count: count == 4)
    assert taken(here, 4) == [0, 1, 2, 3]
    assert taken(dead, 4) == [4, 5, 6, 7]


def test_over_a_duplex_link_both_fetch_and_only_so_many_are_on_their_way(brokers: Brokers) -> None:
    """A queue that is full there holds its link, and no message beyond prefetch-size."""
    two = started(brokers, duplex=True, prefetch_size=7)
    for fetches, has, name in ((two.near, two.far, "orders"), (two.far, two.near, "stock")):
        there = has.declare_queue(name, durable=True)
        here = fetches.declare_queue(name, slots=4, durable=True)
        consumes(here)
        publishes(there, *range(30))
        brokers.until(lambda there=there: len(there), lambda left: left == 30 - 4 - 7)
        assert taken(here, 30) == [*range(30)]


def test_what_came_over_a_link_goes_over_no_other(brokers: Brokers) -> None:
    """Both fetch from each other: without the mark it would never come to rest."""
    brokers.add("far", brokers.address("near")).start().becomes("live")
    brokers.add("near", brokers.address("far")).start().becomes("live")
    for each in ("near", "far"):
        brokers.becomes(each, "up")
    near, far = brokers.at("near"), brokers.at("far")
    here, there = near.declare_queue("orders", durable=True), far.declare_queue("orders")
    consumes(here)
    consumes(there)
    publishes(there, *range(40))
    brokers.until(lambda: len(here), lambda count: count == 20)
    publishes(here, *range(100, 140))
    brokers.until(lambda: (len(here), len(there)), lambda found: found == (40, 40))
    assert sorted(taken(here, 40) + taken(there, 40)) == [*range(40), *range(100, 140)]
    for each in ("near", "far"):  # each went once
        brokers.counts(each, 20)


def test_what_is_on_its_way_is_not_purged_and_its_queue_not_deleted(two: Two) -> None:
    there = two.far.declare_queue("orders", durable=True, slots=4096)
    here = two.near.declare_queue("orders", durable=True, slots=64)
    consumes(here)
    publishes(there, *range(200))
    two.brokers.until(lambda: len(here), lambda count: count == 64)
    [name] = [each.name for each in two.far.queues() if each.name.startswith("$link.")]
    ring = two.far.queue(name)
    two.brokers.until(lambda: len(ring) + len(there), lambda count: count == 136)
    with pytest.raises(InvalidArgument, match="never purged"):
        ring.purge()
    with pytest.raises(InvalidArgument, match="deleted when it is empty"):
        two.far.delete_queue(name, force=True)
    two.brokers["near"].kill()
    assert len(ring)
    ring.resume()

    def moved() -> int:
        """What far was about to send is in the ring again when it knows."""
        ring.move_to(there)
        return len(there)

    two.brokers.until(moved, lambda count: count >= 136)
    assert (len(ring), len(there)) == (0, 136)
    two.far.delete_queue(name, force=True)
