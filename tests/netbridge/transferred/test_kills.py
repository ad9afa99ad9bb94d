"""Both ends are killed under load and fail over, and each message is there once."""

from __future__ import annotations

import os
import threading

import pytest

from tests.netbridge.networked.conftest import Brokers, taken
from tests.netbridge.transferred.conftest import (
    add,
    agent_of,
    bound,
    drained,
    forwarded,
    got,
    subscribed,
)

ROUNDS = int(os.environ.get("AGENT_KILLS", "4"))
OF_A_ROUND = 400


@pytest.mark.parametrize("victim", ["near", "far"])
def test_each_is_there_once_whoever_is_killed_under_load(brokers: Brokers, victim: str) -> None:
    """Also beyond: the one that is killed may have published a part of what came."""
    add(brokers, "end").start().becomes("live")
    add(brokers, "far", {"name": "trade", "to": "end", "mode": 2}).start().becomes("live")
    add(brokers, "near", {"name": "trade", "to": "far", "mode": 2}).start().becomes("live")
    queues = [bound(brokers.at(each), "trade", "topic", key="#") for each in ("far", "end")]
    near = brokers.at("near")
    trade = forwarded(brokers, near, "trade", "topic")
    forwarded(brokers, brokers.at("far"), "trade")
    found: list[list[int]] = [[], []]
    for round_ in range(ROUNDS):
        numbers = range(round_ * OF_A_ROUND, (round_ + 1) * OF_A_ROUND)
        load = threading.Thread(
            target=lambda numbers=numbers: [
                trade.publish(b"%d" % each, key=f"k{each % 3}", timeout=60) for each in numbers
            ]
        )
        load.start()
        found[0] += taken(queues[0], 20)
        brokers[victim].kill()
        brokers[victim].start().becomes("live")
        load.join()
    for queue, those in zip(queues, found, strict=True):
        those += got(queue, ROUNDS * OF_A_ROUND - len(those))
        assert those == [*range(ROUNDS * OF_A_ROUND)]
    for name in ("near", "far"):
        drained(brokers, brokers.at(name), "trade")


def test_mode_4_between_pairs_that_fail_over(brokers: Brokers) -> None:
    """Each is there once, and comes back once."""
    hosts = ",".join(brokers.address(each).removeprefix("tcp://") for each in ("a", "b"))
    given = {"name": "trade", "host": hosts, "mode": 4}
    add(brokers, "a").start().becomes("live")
    add(brokers, "b", role="backup", shares="a").start().becomes("passive")
    add(brokers, "c", given).start().becomes("live")
    add(brokers, "d", given, role="backup", shares="c").start().becomes("passive")
    queues = [bound(brokers.at(each), "trade", "topic", key="#") for each in ("a", "c")]
    trade = forwarded(brokers, brokers.at("c"), "trade")
    subscribed(brokers, brokers.at("a"), "trade", 1)
    for step, (victim, heir) in enumerate(((None, None), ("a", "b"), ("c", "d"))):
        numbers = range(step * 100, step * 100 + 100)
        if victim is not None and heir is not None:
            brokers[victim].kill()
            for each in numbers:
                trade.publish(b"%d" % each, key="k", timeout=60)
            brokers[heir].becomes("live")
        else:
            for each in numbers:
                trade.publish(b"%d" % each, key="k", timeout=60)
        for queue in queues:
            assert got(queue, 100) == [*numbers]


def test_a_pair_there_that_fails_over_and_one_here(brokers: Brokers) -> None:
    hosts = ",".join(brokers.address(each).removeprefix("tcp://") for each in ("a", "b"))
    given = {"name": "trade", "host": hosts, "mode": 2}
    add(brokers, "a").start().becomes("live")
    add(brokers, "b", role="backup", shares="a").start().becomes("passive")
    add(brokers, "c", given).start().becomes("live")
    add(brokers, "d", given, role="backup", shares="c").start().becomes("passive")
    there = bound(brokers.at("a"), "trade", "topic", key="#")
    trade = forwarded(brokers, brokers.at("c"), "trade", "topic")
    link = f"trade@{hosts} forward-all"
    for each in range(100):
        trade.publish(b"%d" % each, key="k", timeout=60)
    found = taken(there, 10)
    brokers["a"].kill()
    for each in range(100, 200):
        trade.publish(b"%d" % each, key="k", timeout=60)
    brokers["b"].becomes("live")
    found += taken(there, 100)
    assert brokers.becomes("c", "up", link)["peer"] == "b"
    brokers["c"].kill()
    for each in range(200, 300):
        trade.publish(b"%d" % each, key="k", timeout=60)
    brokers["d"].becomes("live")
    found += got(there, 300 - len(found))
    assert found == [*range(300)]
    assert brokers.becomes("d", "up", link)["peer"] == "b"
    assert agent_of(brokers, "trade", "a") not in link
