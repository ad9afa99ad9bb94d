"""Random runs of a scenario: most faults are on many ways, and then one is found in a moment.

A search looks at each state once and finds the shortest way; a walk looks at one way to its end.
"""

from __future__ import annotations

import random
from typing import Final

from tests.explore import operation
from tests.explore.machine import Machine, State
from tests.explore.operation import Violation
from tests.explore.scenario import Scenario
from tests.explore.schedule import FLUSH, KILL, STEP, STOP, Action
from tests.explore.search import NOBODY_CAN_GO_ON, Failure
from tests.explore.translation import Translation

STEPS_MAX: Final = 500
"""Of one walk: two that wait for each other would go on for ever."""
CHANGES: Final = (1.0, 0.3, 0.1, 0.03)
"""How probably another actor goes on after a step: faults want many changes, or very few."""
ENDS: Final = 0.02
"""How probably somebody is killed or stopped before a step."""


def walk(scenario: Scenario, translation: Translation, walks: int) -> Failure | None:
    """The first failure of so many walks; the same ones in each run."""
    machine = Machine(scenario, translation)
    chance = random.Random(scenario.name)
    for each in range(walks):
        schedule: list[Action] = []
        try:
            _one(machine, chance, CHANGES[each % len(CHANGES)], schedule)
        except Violation as violation:
            return Failure(str(violation), tuple(schedule))
    return None


def _one(machine: Machine, chance: random.Random, change: float, schedule: list[Action]) -> None:
    state, who = machine.first, 0
    for _ in range(STEPS_MAX):
        able = [each for each in range(machine.roles) if _able(machine, state, each)]
        if not able:
            if not all(state.ended(each) for each in range(machine.roles)):
                raise Violation(NOBODY_CAN_GO_ON)
            machine.conclude(state)
            return
        if who not in able or chance.random() < change:
            who = chance.choice(able)
        action = _action(machine, state, who, chance)
        schedule.append(action)
        state, _ = machine.act(state, action)
        machine.check(state)


def _able(machine: Machine, state: State, who: int) -> bool:
    return bool(state.buffers[who]) or _steps(machine, state, who)


def _steps(machine: Machine, state: State, who: int) -> bool:
    if state.nodes[who].kind == operation.ASK:
        return bool(machine.choices(state, who))
    return machine.enabled(state, who)


def _action(machine: Machine, state: State, who: int, chance: random.Random) -> Action:
    role, scenario = machine.scenario.roles[who], machine.scenario
    if not state.ended(who) and chance.random() < ENDS:
        kinds = [node.kind for node in state.nodes]
        if role.mortal and kinds.count(operation.KILLED) < scenario.kills:
            if not state.buffers[who]:
                return Action(who, KILL)
        elif role.stoppable and kinds.count(operation.STOPPED) < scenario.stops:
            return Action(who, STOP)
    if state.buffers[who] and (not _steps(machine, state, who) or chance.random() < 0.5):
        return Action(who, FLUSH)
    if state.nodes[who].kind == operation.ASK:
        return Action(who, STEP, chance.randrange(len(machine.choices(state, who))))
    return Action(who)
