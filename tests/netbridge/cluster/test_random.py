"""Random schedules: whatever happened, once all have met they know each other, and nobody counts
fewer lives than one that remembers more.

Brokers start, die, start again, are cut off from each other, and are forgotten when they are gone.
Each has queues, which change; in the end each knows those that the others have now.
"""

from __future__ import annotations

from random import Random

import pytest

from shmbroker.netbridge.cluster.advert import Queue
from tests.netbridge.cluster.talk import Town, node_of

NAMES = "abcdef"
QUEUES = [Queue(name, True, is_consumed) for name in "uvwxyz" for is_consumed in (False, True)]
SEEDS = 100
STEPS = 40


class Schedule:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.town = Town()
        self.epochs = dict.fromkeys(NAMES, 0)

    def run(self) -> Town:
        for name in NAMES[:3]:
            self.starts(name)
        for _ in range(STEPS):
            self.steps()
            self.town.said = 0
        self.town.meet()
        for name, member in self.town.members.items():  # each one looks in the end
            self.town.shows(name, *member.adverts.board.adverts)
        self.town.later(10)
        return self.town

    def steps(self) -> None:
        town, random = self.town, self.random
        there = sorted(town.members)
        gone = sorted(set(NAMES) - set(there))
        kind = random.choice(
            ("start", "start", "die", "cut", "meet", "link", "forget", "later", "show", "show")
        )
        if kind == "start" and gone:
            self.starts(random.choice(gone))
        elif kind == "die" and len(there) > 1:
            town.dies(random.choice(there))
        elif kind == "cut" and town.far:
            town.cut(random.choice(sorted({number for _, number in town.far})))
        elif kind == "meet":
            town.meet()
        elif kind == "link" and len(there) > 1:
            town.link(*random.sample(there, 2))
        elif kind == "forget" and gone and there:
            town.forget(random.choice(there), random.choice(gone))
        elif kind == "show" and there:
            queues = random.sample(QUEUES, random.randrange(len(QUEUES)))
            town.shows(random.choice(there), *(each for each in queues))
        elif kind == "later":
            town.later(random.choice((0.5, 1.0, 5.0)))

    def starts(self, name: str) -> None:
        self.epochs[name] += 1
        statics = tuple(f"tcp://{each}:1" for each in NAMES)
        self.town.add(name, epoch=self.epochs[name], statics=statics)


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_all_agree_once_they_have_met(first: int) -> None:
    for seed in range(first, first + 25):
        town = Schedule(seed).run()
        there = set(town.members)
        for name, member in town.members.items():
            assert town.knows(name) >= there - {name}, (seed, name)
            assert all(member.is_there(node_of(each)) for each in there - {name}), (seed, name)
            for each in there - {name}:
                other = town.members[each]
                assert member.lives[node_of(each)] == other.me, (seed, name, each)
                assert town.copied(name, each) == set(other.adverts.board.adverts), (seed, name)
        # who was not restarted remembers those that are gone, and nobody counts fewer
        most = max(member.quorum.seen_max for member in town.members.values())
        assert most >= len(there), seed
        assert all(member.count.lives >= most for member in town.members.values()), seed
        assert not any(state == "duplicate id" for _, state, _ in town.lines), seed
