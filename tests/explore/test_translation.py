"""A translated kernel does what the compiled one would, and forgets what no longer matters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from shmbroker.core.atomics import load, load_acquire, store, store_release
from tests.explore.actor import Actor
from tests.explore.memory import PRIVATE_AT
from tests.explore.operation import DONE, signed
from tests.explore.toys import COUNTER, FLAG, toy_memory
from tests.explore.translation import Translation, program


@program
def sum_of_both() -> int:
    return store_release(COUNTER, load_acquire(COUNTER) + load_acquire(FLAG))


@program
def first_is_forgotten() -> int:
    seen = load_acquire(COUNTER)
    seen = load_acquire(FLAG)
    return store_release(COUNTER, seen)


@program
def loop_by_three(first: int) -> int:
    total = 0
    for each in range(first, 10, 3):
        if each == 7:
            continue
        total += each
    return store_release(COUNTER, total)


@program
def far_away(first: int) -> int:
    value = (load_acquire(COUNTER) + first) * 3
    return store_release(COUNTER, value << 1)


@program
def through_private_memory(first: int) -> int:
    store(PRIVATE_AT, first)
    store(PRIVATE_AT + 8, load(PRIVATE_AT) + load_acquire(COUNTER))
    return store_release(COUNTER, load(PRIVATE_AT + 8))


def actor_of(body: Callable[..., int], *arguments: int) -> Actor:
    memory = toy_memory()
    memory.frozen = True
    return Actor("toy", body, arguments, memory, Translation(), count(1).__next__, {})


def test_what_waits_on_the_operand_stack_is_part_of_the_state() -> None:
    actor = actor_of(sum_of_both)
    zero = actor.follow(actor.start(), 0)
    one = actor.follow(actor.start(), 1)
    assert zero is not one
    assert actor.follow(one, 5).value == 6
    assert actor.follow(zero, 5).value == 5


def test_what_is_never_read_again_is_not() -> None:
    actor = actor_of(first_is_forgotten)
    assert actor.follow(actor.start(), 0) is actor.follow(actor.start(), 1)


def test_a_node_that_is_left_twice_is_reached_by_replay() -> None:
    actor = actor_of(through_private_memory, 40)
    start = actor.start()
    assert [actor.follow(start, each).value for each in (2, 3, 2)] == [42, 43, 42]


def test_a_program_ends() -> None:
    actor = actor_of(first_is_forgotten)
    node = actor.start()
    for _ in range(3):
        assert node.kind != DONE
        node = actor.follow(node, 0)
    assert node is actor.done


def test_a_range_with_a_step_runs_as_in_python() -> None:
    assert actor_of(loop_by_three, 1).start().value == sum(each for each in (1, 4))


@pytest.mark.parametrize("first", [0, (1 << 62), (1 << 63) - 1, -(1 << 63)])
def test_arithmetic_has_64_bits(first: int) -> None:
    actor = actor_of(far_away, first)
    assert actor.follow(actor.start(), 9).value == signed((9 + first) * 6)
