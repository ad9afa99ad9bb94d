"""Finding the fault of a mutant: random walks catch most of them, a search the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.explore.machine import Machine
from tests.explore.mutants import Mutant
from tests.explore.retrace import retrace, retraced, shortened, told
from tests.explore.scenarios import scenario
from tests.explore.search import Failure, explore
from tests.explore.translation import Translation
from tests.explore.walk import walk

STATES_MAX: Final = 20_000_000
"""The rarest, carried-without-a-word-to-finders, is found among 13.5 million: five minutes."""
WALKS: Final = 300
"""They take a second at most."""


class Escaped(AssertionError):
    """A mutant that nothing objects to."""


@dataclass(frozen=True, slots=True)
class Caught:
    """How a mutant was caught."""

    failure: Failure
    again: str
    """The schedule that shows it, if one does: that a run can never finish is seen by a search."""


def is_shown(mutant: Mutant, schedule: str) -> bool:
    """The schedule leads to a failure with the mutant, and to none without it."""
    translation = mutant.translation()
    play = scenario(mutant.scenario)
    if retraced(Machine(play, translation), schedule) is None or translation.unused():
        return False
    return retraced(Machine(play, Translation()), schedule) is None


def hunt(mutant: Mutant) -> Caught:
    translation = mutant.translation()
    play = scenario(mutant.scenario)
    failure = walk(play, translation, WALKS)
    if failure is None or translation.unused():
        translation = mutant.translation()
        outcome = explore(play, translation, states_max=STATES_MAX)
        if translation.unused():
            raise Escaped(f"{mutant.name}: {mutant.scenario} never calls these")
        if outcome.failure is None:
            raise Escaped(f"{mutant.name} was not caught: {outcome}")
        failure = outcome.failure
    return Caught(failure, _again(mutant, failure))


def _again(mutant: Mutant, failure: Failure) -> str:
    machine = Machine(scenario(mutant.scenario), mutant.translation())
    if retrace(machine, failure.schedule) is None:
        return ""
    return told(machine, shortened(machine, failure).schedule)
