"""All that queues can do together, against a model in plain Python: random settings, random steps.

Three participants take part.  A step may answer, and each queue that it changed may look, only as
the model says.  What is covered, alone and in any combination that is allowed:

settings   by declaration, by pattern, and explained; temporary queues; subscriptions by name
publish    with key, priority, properties, group, ttl, id; lent, many at once, in a transaction,
           scheduled, by a named producer, to exchanges with bindings and diverts
limits     in messages and bytes, of the queue and of the producer; block, fail, drop the oldest
take       one, many, received, selected, in loops that begin, go on and are left; by priority, by
           group (bound, let go, rebalanced), by the single active consumer (with its priority or
           exclusive), by those who only look on
deal with  acknowledge, give back, reject, let drop, leave the vhost; by transaction, commit or not
           for want of room, or rolled back; dead letters, expired ones, later redelivery, retry
once       ids repeated while they are remembered and after; numbers of producers repeated
last value what is replaced and carried, and the value of each key; non-destructive, both together
else       move and copy by selector, export and import, purge, pause, cancel, expire, request

Not here, because a clock or a death decides: leases, slow consumers, auto-delete, redelivery that
comes back; nor queues that are made when asked for, as they have too many slots to be full.  Their
tests have their names; so have those for what is killed.

What fails is made short and says the seed and the steps that do it again:
python -m tests.support.settings_model SEED STEP...; with SEED --steps 200000 it goes on for longer.
"""

from __future__ import annotations

import os

import pytest

from tests.support.settings_model import world
from tests.support.settings_model.replay import STEPS, STEPS_A_WORLD, run, run_many

SEED = os.environ.get("SHMBROKER_MODEL_SEED", "1")


def test_any_settings_and_any_steps() -> None:
    assert run_many(SEED, STEPS) >= 20_000


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a model that forgets to count what is purged."""
    monkeypatch.setattr("tests.support.settings_model.queue.QueueModel.purge", lambda queue: 0)
    with pytest.raises(
        AssertionError, match=r"python -m tests.support.settings_model 1/\d+( \d+){2,9}$"
    ):
        run_many("1", STEPS)


def test_there_is_time_for_each_step() -> None:
    story: list[str] = []
    for number in range(20):
        run(f"1/{number}", range(STEPS_A_WORLD), story)
    taken = {line.partition(". ")[2] for line in story}
    assert {step.__name__ for _, step in world.STEPS} <= taken
