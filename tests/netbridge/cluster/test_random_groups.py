"""Random schedules: brokers die and start again, links are slow and cut, disks are late.

As long as no queue is deleted and nobody is forgotten, a group goes to one node, whoever publishes
it and whatever happens.  With that, all agree once they have met.
"""

from __future__ import annotations

from random import Random

import pytest

from shmbroker.netbridge.cluster.group import Group
from tests.netbridge.cluster.grouped import Towns
from tests.netbridge.cluster.talk import node_of

NAMES = "abcd"
GROUPS = "uvwxyz"
TIMEOUT = 5.0
SEEDS = 80
STEPS = 150
WHAT = (
    ["want"] * 6
    + ["pass"] * 10
    + ["keep"] * 4
    + ["later", "consume", "cut", "meet", "die", "start"]
)


class Schedule:
    def __init__(self, seed: int, *, ends: bool) -> None:
        """`ends`: queues are deleted, and a node is forgotten."""
        self.random, self.ends = Random(seed), ends
        self.towns = Towns()

    def run(self) -> Towns:
        towns = self.towns
        for name in NAMES:
            self.starts(name)
            towns.has(name, "orders", consumed=self.random.random() < 0.5)
        towns.meet()
        towns.is_slow = True
        for _ in range(STEPS):
            self.steps()
        return towns

    def settles(self) -> None:
        """All are there, all that was said arrives, and the disks have written."""
        towns = self.towns
        for name in NAMES:
            if name not in towns.handlers and name not in towns.forgotten:
                self.starts(name)
        towns.is_slow = False
        towns.meet()
        towns.later(30.0, steps=100)

    def starts(self, name: str) -> None:
        self.towns.starts(name, local=name == "b", timeout=TIMEOUT)

    def steps(self) -> None:
        towns, random = self.towns, self.random
        there = sorted(towns.handlers)
        gone = sorted(set(NAMES) - set(there) - towns.forgotten)
        name = random.choice(there)
        kind = random.choice([*WHAT, "delete", "make", "forget"] if self.ends else WHAT)
        if kind == "want":
            towns.wants(name, random.choice(GROUPS))
        elif kind == "pass" and (links := [each for each in towns.links if name in each]):
            towns.passes_to(name, random.choice(sorted(links, key=sorted)))
        elif kind == "keep":
            towns.keeps_at(name)
        elif kind == "later":
            towns.later(random.choice((0.1, 0.5, 2.0)))
        elif kind == "consume" and "orders" in towns.places[name].queues:
            towns.has(name, "orders", consumed=random.random() < 0.5)
        elif kind == "cut" and towns.links:
            towns.cut(*sorted(random.choice(sorted(towns.links, key=sorted))))
        elif kind == "meet":
            towns.meet()
        elif kind == "die" and len(there) > 1:
            towns.dies(name)
        elif kind == "start" and gone:
            self.starts(random.choice(gone))
        elif kind == "delete" and "orders" in towns.places[name].queues:
            towns.has(name, "orders", consumed=None)
        elif kind == "make":
            towns.has(name, "orders")
        elif kind == "forget" and gone and gone != ["b"] and not towns.forgotten:
            towns.forget(random.choice([each for each in gone if each != "b"]))


@pytest.mark.parametrize("first", range(0, SEEDS, 40))
def test_a_group_goes_to_one_node_whatever_happens(first: int) -> None:
    ways = 0
    for seed in range(first, first + 40):
        schedule = Schedule(seed, ends=False)
        towns = schedule.run()
        schedule.settles()
        kept = towns.places["b"].kept
        for group, nodes in towns.ways.items():
            assert nodes == {kept[group]}, (seed, group)
        ways += len(towns.ways)
    assert ways > 80, "most groups are routed"


@pytest.mark.parametrize("first", range(0, SEEDS, 40))
def test_all_agree_once_they_have_met(first: int) -> None:
    for seed in range(first, first + 40):
        schedule = Schedule(seed, ends=True)
        towns = schedule.run()
        schedule.settles()
        there = {node_of(each): towns.places[each].queues for each in NAMES
                 if each not in towns.forgotten}  # fmt: skip
        for name in towns.handlers:
            for group in GROUPS:
                towns.wants(name, group)
        for group, node in towns.places["b"].kept.items():
            assert group.queue in there.get(node, ()), (seed, group)
        for name, handler in towns.handlers.items():
            is_any = any(there.values())
            assert handler.routes == towns.places["b"].kept, (seed, name)
            assert len(handler.routes) == (len(GROUPS) if is_any else 0), (seed, name)


def test_whoever_asks_has_an_answer_in_time() -> None:
    for seed in range(20):
        schedule = Schedule(seed, ends=True)
        towns = schedule.run()
        asked = {name: [*handler.routes] for name, handler in towns.handlers.items()}
        for name in asked:
            towns.wants(name, "late")
        for name in list(towns.handlers):
            towns.later(TIMEOUT + 0.1)
            late = Group("orders", "late")
            place = towns.places[name]
            assert (late in towns.handlers[name].routes) != (late in place.timeouts), (seed, name)
