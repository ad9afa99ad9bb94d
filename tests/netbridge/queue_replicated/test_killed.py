"""Brokers of originals and of replicas are killed at random, while queues are used.

Two queues get and lose messages in transactions over both.  They are looked at all the while: what
one of them has before and after the other one was looked at, that one has too.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from shmbroker import Broker, Empty, Queue
from tests.netbridge.queue_replicated.conftest import Made, Two, content

NAMES = ("first", "second")
ROUNDS = 4
"""Of a few hundred transactions each."""
LOOKS = 500


def bodies(queue: Queue) -> set[bytes]:
    return {each.body for each in queue.browse()}


def is_half(looked: Queue, between: Queue) -> bool:
    before, there, after = bodies(looked), bodies(between), bodies(looked)
    return not before & after <= there


def is_never_half(here: Broker) -> None:
    """A moment is shown in microseconds; in more if who shows it loses its processor there."""
    one, other = (here.queue(name) for name in NAMES)
    for looked, between in ((one, other), (other, one)):
        assert not all(is_half(looked, between) for _ in range(LOOKS)), "half of a transaction"


def uses(there: Broker, random: Random, number: int) -> int:
    """One transaction over both: the number of the next."""
    with there.transaction() as transaction:
        if random.random() < 0.55:
            for name in NAMES:
                transaction.queue(name).publish(b"%d" % number, priority=random.randrange(10))
            return number + 1
        for name in NAMES:
            try:
                transaction.queue(name).get(timeout=0)
            except Empty:
                break
    return number


def restart(run: Two, random: Random) -> None:
    which = random.choice((run.original, run.copy))
    which.kill()
    which.start().becomes("live")


@pytest.mark.parametrize("seed", [1])
def test_replicas_become_equal_and_never_show_half(two: Made, seed: int) -> None:
    random = Random(seed)
    run = two()
    there, here = run.up()
    originals: list[Any] = [there.declare_queue(name, slots=512) for name in NAMES]
    for name in NAMES:
        run.follow(name, slots=512)
        run.waits("following", name)
    number = 0
    for _ in range(ROUNDS):
        for each in range(200):
            if originals[0].statistics().depth < 400:
                number = uses(there, random, number)
            if each % 5 == 0:
                is_never_half(here)
        restart(run, random)
    for original in originals:
        copy = here.queue(original.name)
        run.equal(original, copy)
        assert content(copy), "something was there to be compared"
