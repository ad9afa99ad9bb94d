"""Brokers that forward to each other, in twos and threes: one copy each, and it ends."""

from __future__ import annotations

import pytest

from shmbroker import Queue
from tests.netbridge.networked.conftest import Brokers
from tests.netbridge.transferred.conftest import add, agent_of, bound, drained, forwarded, got

RINGS = {
    "two": {"a": "b", "b": "a"},
    "three": {"a": "b", "b": "c", "c": "a"},
}
PROPERTIES = {"land": "de", **{f"p{each}": each for each in range(14)}}
"""One more, and they have another head."""


def ring(brokers: Brokers, ways: dict[str, str], **more: object) -> dict[str, Queue]:
    """All are up; what each has at its broker."""
    for name, to in ways.items():
        add(brokers, name, *[{"name": "trade", "to": each, "mode": 2} | more for each in to])
    for name in ways:
        brokers[name].start()
    for name in ways:
        brokers[name].becomes("live")
    queues = {name: bound(brokers.at(name), "trade", "topic", key="#") for name in ways}
    for name, to in ways.items():
        if to:
            forwarded(brokers, brokers.at(name), "trade")
        for each in to:
            brokers.becomes(name, "up", agent_of(brokers, "trade", each))
    return queues


@pytest.mark.parametrize("ways", RINGS.values(), ids=RINGS)
def test_each_has_one_copy_and_it_ends(brokers: Brokers, ways: dict[str, str]) -> None:
    queues = ring(brokers, ways)
    for number, name in enumerate(ways):
        exchange = brokers.at(name).exchange("trade")
        exchange.publish(b"%d" % number, key="k", properties=PROPERTIES)
        exchange.publish(b"%d" % (number + 10), key="k")
    for queue in queues.values():
        found: list[tuple[int, object]] = []
        while len(found) < 2 * len(ways):
            with queue.get(timeout=60) as message:
                found.append((int(bytes(message.body)), message.properties))
                message.ack()
        wanted = [(each, PROPERTIES) for each in range(len(ways))]
        assert sorted(found, key=lambda each: each[0]) == [
            *wanted, *((each + 10, {}) for each in range(len(ways)))
        ]  # fmt: skip
        assert got(queue, 0) == []
    for name in ways:
        drained(brokers, brokers.at(name), "trade")


@pytest.mark.parametrize(("hops", "reached"), [(1, 1), (2, 2)])
def test_a_message_goes_over_so_many_agents_at_most(
    brokers: Brokers, hops: int, reached: int
) -> None:
    queues = ring(brokers, {"a": "b", "b": "c", "c": "d", "d": ""}, max_hops=hops)
    exchange = brokers.at("a").exchange("trade")
    exchange.publish(b"5", key="k", properties={"land": "de"})
    for each in [*queues][: reached + 1]:
        assert got(queues[each], 1) == [5]
    for each in [*queues][reached + 1 :]:
        assert got(queues[each], 0) == []
