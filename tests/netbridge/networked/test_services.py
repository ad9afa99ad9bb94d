"""One link for each service of a uri, before and after each failover."""

from __future__ import annotations

from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.sink.sink import Sink
from shmbroker.netbridge.link.origin import origin_of
from tests.netbridge.networked.conftest import (
    DURABLE,
    Brokers,
    consumes,
    publishes,
    started,
    taken,
)


def test_masterslave_has_one_link_through_every_failover(brokers: Brokers) -> None:
    pair = f"masterslave:({brokers.address('a')},{brokers.address('b')})"
    brokers.add("a").start().becomes("live")
    brokers.add("b", role="backup", shares="a").start().becomes("passive")
    brokers.add("near", f"{pair}?initial-reconnect-delay=50ms").start().becomes("live")
    near, far = brokers.at("near"), brokers.at("a")
    there, here = (each.declare_queue("orders", **DURABLE) for each in (far, near))
    consumes(here)
    publishes(there, 0)
    assert taken(here, 1) == [0]
    brokers["a"].kill()
    publishes(there, 1)
    brokers["b"].becomes("live")
    publishes(there, 2)
    assert taken(here, 2) == [1, 2]
    row = brokers.becomes("near", "up")
    assert (row["peer"], row["member"]) == ("b", brokers.address("b"))
    brokers["a"].start().becomes("live")  # failback: b stops serving in good order
    publishes(there, 3)
    assert taken(here, 1) == [3]
    row = brokers.becomes("near", "up")
    assert (row["peer"], row["member"]) == ("a", brokers.address("a"))
    assert taken(here, 1, patience=0.5) == []
    states = [line["state"] for line in brokers["near"].said()
              if line["event"] == "link" and line["link"] == "network/fetch"]  # fmt: skip
    assert states.count("up") >= 3, states
    assert len(states) < 20, "none for an attempt"
    rings = [each.name for each in far.queues() if each.name.startswith("$link.")]
    assert len(rings) == 1


def test_the_backup_of_who_fetches_has_the_same_link(brokers: Brokers) -> None:
    brokers.add("far").start().becomes("live")
    brokers.add("a", brokers.address("far")).start().becomes("live")
    brokers.add("b", brokers.address("far"), "backup", shares="a").start().becomes("passive")
    near, far = brokers.at("a"), brokers.at("far")
    there, here = (each.declare_queue("orders", **DURABLE) for each in (far, near))
    consumes(here)
    publishes(there, *range(100))
    found = taken(here, 10)
    brokers["a"].kill()
    publishes(there, *range(100, 200))
    brokers["b"].becomes("live")
    found += taken(here, 190)
    assert sorted(found) == [*range(200)]
    assert taken(here, 1, patience=0.5) == []
    rings = [each.name for each in far.queues() if each.name.startswith("$link.")]
    assert len(rings) == 1


def test_a_link_that_is_not_served_here_is_made_again(brokers: Brokers) -> None:
    """Somebody else pours its stream, as a former broker that is not repaired yet may."""
    two = started(brokers)
    there, here = two.far.declare_queue("orders"), two.near.declare_queue("orders")
    publishes(there, 1)
    assert taken(here, 1) == [1]
    [ring] = [each.name for each in two.far.queues() if each.name.startswith("$link.")]
    brokers.until(lambda: len(two.far.queue(ring)), lambda left: left == 0)
    node = bytes.fromhex(brokers.link("near")["node"])
    brokers.order("near", "stop")
    brokers.becomes("near", "stopped")
    with Follower(two.far, "probe") as probe:
        identity = probe.stands(probe.add(two.far.queue(ring))).identity
    origin = origin_of(node, "network/fetch", identity, 0)
    with Sink(two.near, origin, stops_at_refused=True) as other:
        other.to_node()
        brokers.order("near", "start")
        brokers.until(
            lambda: [line.get("what") for line in brokers["far"].said()],
            lambda said: "not served there" in said,
        )
    publishes(there, 2)
    assert taken(here, 1) == [2]


def test_static_has_a_link_to_each(brokers: Brokers) -> None:
    addresses = [brokers.address(each) for each in ("east", "west")]
    for each in ("east", "west"):
        brokers.add(each).start().becomes("live")
    brokers.add("near", f"static:({','.join(addresses)})").start().becomes("live")
    here = brokers.at("near").declare_queue("orders", durable=True)
    consumes(here)
    for first, name in ((0, "east"), (100, "west")):
        publishes(brokers.at(name).declare_queue("orders", durable=True), *range(first, first + 50))
    assert sorted(taken(here, 100)) == [*range(50), *range(100, 150)]
    for name, address in zip(("east", "west"), addresses, strict=True):
        link = f"fetch@{address.removeprefix('tcp://')}"
        assert brokers.becomes("near", "up", link)["peer"] == name
        brokers.counts("near", 50, link)
