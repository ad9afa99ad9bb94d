"""A schedule that showed a fault once, taken again: milliseconds instead of a search.

`recorded.txt` has one for each mutant that takes long to find.  Only a step that a search could
take counts, so a schedule that no longer fits the kernels shows nothing, and is then searched for
anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.explore import operation
from tests.explore.machine import Machine, State
from tests.explore.operation import Violation
from tests.explore.schedule import FLUSH, KILL, STOP, Action, read, written
from tests.explore.search import Failure, explore_from

STATES_AFTER_MAX: Final = 20_000
ITS_END: Final = 2
"""States that are enough to see how a run ends."""
RECORDED: Final = Path(__file__).with_name("recorded.txt")


def recorded() -> Mapping[str, str]:
    """The schedules by name of the mutant."""
    lines = RECORDED.read_text().splitlines()
    return {name: schedule for name, _, schedule in (line.partition(": ") for line in lines)}


def record(schedules: Mapping[str, str]) -> None:
    text = "".join(f"{name}: {schedule}\n" for name, schedule in schedules.items())
    RECORDED.write_text(text)


def retraced(machine: Machine, schedule: str) -> Failure | None:
    """The failure to which this schedule leads, if there is one."""
    names = [actor.name for actor in machine.actors]
    try:
        return retrace(machine, list(read(schedule, names)))
    except ValueError:  # an actor has another name now
        return None


def retrace(
    machine: Machine, schedule: Sequence[Action], states_max: int = STATES_AFTER_MAX
) -> Failure | None:
    """What fails on the way, or behind it, among so many states: a run that cannot finish, say."""
    state = machine.first
    taken: list[Action] = []
    try:
        for action in schedule:
            if not _is_possible(machine, state, action):
                return None
            taken.append(action)
            state, _ = machine.act(state, action)
            machine.check(state)
    except Violation as violation:
        return Failure(str(violation), tuple(taken))
    after = explore_from(machine, state, states_max=states_max).failure
    return after and Failure(after.message, (*taken, *after.schedule))


def shortened(machine: Machine, failure: Failure) -> Failure:
    """A failure without the steps that it does not need."""
    chunk = len(failure.schedule) // 2
    while chunk:
        at = 0
        while at < len(failure.schedule):
            rest = (*failure.schedule[:at], *failure.schedule[at + chunk :])
            shorter = retrace(machine, rest, ITS_END)
            if shorter is not None and len(shorter.schedule) < len(failure.schedule):
                failure = shorter
            else:
                at += chunk
        chunk //= 2
    return failure


def told(machine: Machine, schedule: Iterable[Action]) -> str:
    """As it stands in the file."""
    return written(schedule, [actor.name for actor in machine.actors])


def _is_possible(machine: Machine, state: State, action: Action) -> bool:
    """A search would take this step here."""
    who = action.who
    if who >= machine.roles:
        return False
    kind = state.nodes[who].kind
    if action.mark == FLUSH:
        return bool(state.buffers[who])
    if kind >= operation.DONE:
        return False
    scenario, role = machine.scenario, machine.scenario.roles[who]
    kinds = [node.kind for node in state.nodes]
    if action.mark == KILL:
        may_kill = kinds.count(operation.KILLED) < scenario.kills
        return may_kill and role.mortal and not state.buffers[who]
    if action.mark == STOP:
        return kinds.count(operation.STOPPED) < scenario.stops and role.stoppable
    if kind == operation.ASK:
        return action.answer < len(machine.choices(state, who))
    return action.answer == 0 and machine.enabled(state, who)
