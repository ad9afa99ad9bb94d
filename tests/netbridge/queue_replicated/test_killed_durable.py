"""Brokers of durable originals and of durable replicas are killed at random, while all is used.

Two queues get and lose the same messages in transactions over both.  One has priorities, one keeps
the last of each key, and one forgets what is old.  At some of the kills the replica's host loses
its memory; then its replicas are looked at before it hears of its originals again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random
from typing import Any, Final

from shmbroker import Broker, Empty, Queue, QueueFull, Unconfirmed
from tests.netbridge.queue_replicated.conftest import LONG, Made, Two, content
from tests.netbridge.queue_replicated.test_durable import bodies, forgets

TOGETHER: Final = ("first", "second")
OTHERS: Final[dict[str, dict[str, Any]]] = {
    "priorities": {"priorities": True},
    "last value": {"last_value": True},
    "expiry": {"ttl": 0.05},
}
NAMES: Final = (*TOGETHER, *OTHERS)
SLOTS: Final = 128
KILLS: Final = int(os.environ.get("SHMBROKER_REPLICA_KILLS", "5"))
"""`make crash` has 50."""
SEED: Final = int(os.environ.get("SHMBROKER_REPLICA_SEED", "1"))
ACTS: Final = 150


class Use:
    """Of the originals."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._number = 0

    def acts(self, there: Broker, times: int) -> None:
        for _ in range(times):
            if self._random.random() < 0.3:
                self._transaction(there)
            else:
                self._alone(there.queue(self._random.choice(tuple(OTHERS))))

    def _transaction(self, there: Broker) -> None:
        with there.transaction() as transaction:
            if self._random.random() < 0.55:
                for name in TOGETHER:
                    transaction.queue(name).publish(b"%d" % self._number)
            else:
                with suppress(Empty):
                    for name in TOGETHER:
                        transaction.queue(name).get(timeout=0).ack()
        self._number += 1

    def _alone(self, queue: Queue) -> None:
        self._number += 1
        with suppress(Empty, QueueFull, Unconfirmed):
            if self._random.random() < 0.6:
                queue.publish(
                    b"%d" % self._number + bytes(self._random.randrange(300)),
                    key=f"k{self._random.randrange(8)}", priority=self._random.randrange(10),
                    timeout=0, confirm="shm",
                )  # fmt: skip
            else:
                for each in queue.get_many(self._random.randrange(1, 4), timeout=0):
                    if self._random.random() < 0.7:
                        each.ack()
                    else:
                        each.give_back()


def is_whole(here: Broker) -> None:
    first, second = (bodies(here.queue(name)) for name in TOGETHER)
    assert first == second, "half of a transaction"


def killed(run: Two, random: Random) -> None:
    """One of them; whether the replicas are whole is looked at while the originals are away."""
    if random.random() < 0.4:
        run.original.kill()
        run.original.start().becomes("live")
        return
    run.copy.kill()
    if random.random() < 0.6:
        run.original.kill()
        if random.random() < 0.7:
            forgets(run, "copy")
        run.copy.start().becomes("live")
        is_whole(run.connected("copy"))
        run.original.start().becomes("live")
    else:
        run.copy.start().becomes("live")


@LONG
def test_replicas_become_equal_whatever_is_killed(two: Made) -> None:
    random = Random(SEED)
    run = two()
    there, _ = run.up()
    for name in NAMES:
        there.declare_queue(name, durable=True, slots=SLOTS, **OTHERS.get(name, {}))
        run.follow(name, slots=SLOTS)
        run.waits("following", name)
    use = Use(random)
    for _ in range(KILLS):
        use.acts(run.connected("original"), random.randrange(ACTS))
        killed(run, random)
    there, here = run.connected("original"), run.connected("copy")
    use.acts(there, ACTS)
    for name in NAMES:
        run.waits("following", name)
        there.queue(name).expire()
        run.equal(there.queue(name), here.queue(name))
    assert content(here.queue("priorities")), "something was there to be compared"
    is_whole(here)
    run.original.kill()
    before = [content(here.queue(name)) for name in NAMES]
    run.copy.kill()
    forgets(run, "copy")
    run.copy.start().becomes("live")
    here = run.connected("copy")
    assert [content(here.queue(name)) for name in NAMES] == before
