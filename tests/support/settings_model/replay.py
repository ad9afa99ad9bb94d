"""Running so many steps; what fails is made short, and said so that it can be done again."""

from __future__ import annotations

import time
from collections.abc import Iterable

# these have the steps
from tests.support.settings_model import (
    managing,  # noqa: F401
    publishing,  # noqa: F401
    taking,  # noqa: F401
    transacting,  # noqa: F401
)
from tests.support.settings_model.looking import look, look_at_all
from tests.support.settings_model.world import Deviation, World, take_steps

STEPS = 24_000
STEPS_A_WORLD = 150
SHORTENING = 30.0
"""So many seconds for making a failure shorter."""


def run(seed: str, numbers: Iterable[int], story: list[str]) -> int:
    """These steps in a vhost of their own: how many were taken."""
    world = World(story)
    try:
        done = take_steps(world, seed, numbers, look)
        look_at_all(world)
    finally:
        world.close()
    return done


def fails(seed: str, numbers: list[int]) -> bool:
    try:
        run(seed, numbers, [])
    except Exception:  # noqa: BLE001 - whatever it is
        return True
    return False


def shortened(seed: str, numbers: list[int]) -> list[int]:
    """Leave out as many as possible, in ever smaller parts."""
    part, end = len(numbers) // 2, time.monotonic() + SHORTENING
    while part > 0:
        at = 0
        while at < len(numbers) and time.monotonic() < end:
            fewer = numbers[:at] + numbers[at + part :]
            if fails(seed, fewer):
                numbers = fewer
            else:
                at += part
        part //= 2
    return numbers


def run_many(seed: str, steps: int) -> int:
    """At least so many steps, in one vhost after another: how many."""
    done = number = 0
    while done < steps:
        each = f"{seed}/{number}"
        try:
            done += run(each, range(STEPS_A_WORLD), [])
        except Exception as error:
            raise Deviation(told(each, str(error))) from error
        number += 1
    return done


def told(seed: str, error: str) -> str:
    """The failure with all that led to it, and how to see it again."""
    few, story = shortened(seed, list(range(STEPS_A_WORLD))), list[str]()
    try:
        run(seed, few, story)
    except Exception as again:  # noqa: BLE001 - it should be the same, but need not be
        error = str(again)
    command = f"python -m tests.support.settings_model {seed} {' '.join(map(str, few))}"
    return "\n".join([*story, error, command])
