"""The explorer itself, on protocols whose answers are known."""

from __future__ import annotations

import pytest

from tests.explore import toys
from tests.explore.machine import Machine
from tests.explore.report import explained
from tests.explore.scenario import Rules, Scenario
from tests.explore.schedule import Action, read, written
from tests.explore.search import CANNOT_FINISH, Outcome, explore
from tests.explore.toys import FLAG, OTHER_FLAG, CountIs, OneAtATime, WholeBody, toy
from tests.explore.translation import Mutation, Translation
from tests.explore.walk import walk


def failure_of(outcome: Outcome) -> str:
    assert outcome.failure is not None, f"nothing was found: {outcome}"
    return outcome.failure.message


def test_a_lost_increment_is_found_by_the_shortest_schedule() -> None:
    outcome = explore(toy(CountIs(4), toys.racy, toys.racy))
    assert failure_of(outcome) == "counted 3, not 4" or failure_of(outcome) == "counted 2, not 4"
    assert outcome.failure is not None
    assert len(outcome.failure.schedule) == 8


def test_a_walk_meets_what_a_search_finds() -> None:
    failure = walk(toy(CountIs(4), toys.racy, toys.racy), Translation(), 100)
    assert failure is not None
    machine = Machine(toy(CountIs(4), toys.racy, toys.racy), Translation())
    assert f"VIOLATION at the end: {failure.message}" in explained(machine, failure)
    assert walk(toy(CountIs(4), toys.careful, toys.careful), Translation(), 100) is None


def test_an_atomic_increment_loses_nothing() -> None:
    outcome = explore(toy(CountIs(4), toys.careful, toys.careful))
    assert outcome.failure is None
    assert outcome.complete


def test_a_lock_keeps_others_out() -> None:
    outcome = explore(toy(OneAtATime(), toys.locking, toys.locking))
    assert outcome.failure is None
    assert outcome.complete


def test_a_lock_that_is_not_taken_lets_two_in() -> None:
    mutation = Mutation("locking", "exchange(FLAG, 1) != 0", "load_acquire(FLAG) != 0")
    scenario = toy(OneAtATime(), toys.locking, toys.locking)
    outcome = explore(scenario, Translation([mutation]))
    assert failure_of(outcome) == "two are inside"


def test_a_snippet_must_occur_exactly_once() -> None:
    scenario = toy(OneAtATime(), toys.locking)
    with pytest.raises(ValueError, match="0 times, not once"):
        explore(scenario, Translation([Mutation("locking", "no such text", "")]))


def test_a_lock_whose_holder_dies_can_never_be_taken_again() -> None:
    outcome = explore(toy(Rules(), toys.locking, toys.locking, kills=1))
    assert failure_of(outcome) == CANNOT_FINISH


def test_waiting_inside_of_a_call_for_somebody_who_may_be_stopped_is_found() -> None:
    outcome = explore(toy(Rules(), toys.spinning, toys.spinning))
    assert failure_of(outcome).endswith("never comes back from its call")


@pytest.mark.parametrize(
    ("body", "buffered", "safe"),
    [
        (toys.dekker, False, True),
        (toys.dekker, True, False),
        (toys.fenced, True, True),
    ],
    ids=["plain-sequential", "plain-buffered", "exchange-buffered"],
)
def test_only_a_store_buffer_lets_a_load_overtake_a_store(
    body: object, buffered: bool, safe: bool
) -> None:
    assert callable(body)
    flags = [(FLAG, OTHER_FLAG), (OTHER_FLAG, FLAG)]
    scenario = toy(OneAtATime(), body, body, arguments=flags, store_buffers=buffered)
    assert (explore(scenario).failure is None) is safe


def test_a_body_is_read_as_it_was_written() -> None:
    assert explore(toy(WholeBody(), toys.writer, toys.reader)).failure is None


def test_publishing_before_filling_is_found() -> None:
    scenario = toy(WholeBody(), toys.writer, toys.reader)
    early = [
        Mutation(
            "writer", "    store(BODY, 7)\n", "    store_release(FLAG, 1)\n    store(BODY, 7)\n"
        ),
        Mutation(
            "writer", "    store(BODY + 8, 8)", "    load_acquire(FLAG)\n    store(BODY + 8, 8)"
        ),
    ]
    assert failure_of(explore(scenario, Translation(early))) == "read 7, 0"


@pytest.mark.parametrize(
    ("body", "message"),
    [(toys.stray, "outside of the known memory"), (toys.far_shift, "means nothing")],
    ids=["stray", "shift"],
)
def test_what_no_machine_should_do_is_found(body: object, message: str) -> None:
    assert callable(body)
    assert message in failure_of(explore(toy(Rules(), body)))


def test_a_failure_is_told_line_by_line_and_replays() -> None:
    scenario: Scenario = toy(CountIs(4), toys.racy, toys.racy)
    machine = Machine(scenario, Translation())
    outcome = explore(scenario)
    assert outcome.failure is not None
    story = explained(machine, outcome.failure)
    assert "racy_increment (" in story
    assert "counter: 0 -> 1" in story
    assert "VIOLATION at the end: counted" in story
    assert "python -m tests.explore replay toy 'actor" in story


def test_a_schedule_reads_as_it_was_written() -> None:
    names = ["producer", "repairer"]
    schedule = [Action(0), Action(0), Action(1, answer=1), Action(0, "!"), Action(1, "~")]
    text = written(schedule, names)
    assert text == "producer*2 repairer:1 !producer ~repairer"
    assert list(read(text, names)) == schedule
