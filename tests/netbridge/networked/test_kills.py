"""Both ends are killed under load, and each message is there once."""

from __future__ import annotations

import os
import threading

import pytest

from tests.netbridge.networked.conftest import DURABLE, Brokers, consumes, taken

ROUNDS = int(os.environ.get("NETWORK_KILLS", "4"))
OF_A_ROUND = 400


@pytest.mark.parametrize("victim", ["near", "far"])
def test_each_is_there_once_whoever_is_killed_under_load(brokers: Brokers, victim: str) -> None:
    brokers.add("far").start().becomes("live")
    brokers.add("near", brokers.address("far")).start().becomes("live")
    near, far = brokers.at("near"), brokers.at("far")
    there, here = (each.declare_queue("orders", **DURABLE) for each in (far, near))
    consumes(here)
    found: list[int] = []
    for round_ in range(ROUNDS):
        numbers = range(round_ * OF_A_ROUND, (round_ + 1) * OF_A_ROUND)
        load = threading.Thread(
            target=lambda numbers=numbers: [there.publish(b"%d" % each) for each in numbers]
        )
        load.start()
        found += taken(here, 20)
        brokers[victim].kill()
        brokers[victim].start().becomes("live")
        load.join()
    found += taken(here, ROUNDS * OF_A_ROUND - len(found))
    assert sorted(found) == [*range(ROUNDS * OF_A_ROUND)]
    assert taken(here, 1, patience=1.0) == [], "none is there twice"
    assert len(there) == 0
    [ring] = [each.name for each in far.queues() if each.name.startswith("$link.")]
    brokers.until(lambda: len(far.queue(ring)), lambda left: left == 0)


def test_what_is_on_its_way_outlives_both(brokers: Brokers) -> None:
    brokers.add("far").start().becomes("live")
    brokers.add("near", brokers.address("far")).start().becomes("live")
    near, far = brokers.at("near"), brokers.at("far")
    there, here = (
        far.declare_queue("orders", **DURABLE),
        near.declare_queue("orders", durable=True, slots=4),
    )
    consumes(here)
    for each in range(50):
        there.publish(b"%d" % each)
    brokers.until(lambda: len(there), lambda left: left == 0)
    for each in ("near", "far"):
        brokers[each].kill()
    for each in ("far", "near"):
        brokers[each].start().becomes("live")
    assert taken(here, 50) == [*range(50)]
    assert taken(here, 1, patience=1.0) == []
