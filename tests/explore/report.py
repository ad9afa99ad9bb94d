"""A schedule as a story: one line a step, in the words of the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os.path import realpath, relpath

from tests.explore import operation
from tests.explore.actor import Node
from tests.explore.machine import Machine, State
from tests.explore.operation import NAMES, Violation
from tests.explore.schedule import FLUSH, KILL, STOP, Action, written
from tests.explore.search import Failure


def replay(machine: Machine, schedule: Iterable[Action]) -> Iterator[str]:
    """Take the steps of a schedule, check after each, and tell what happens."""
    state = machine.first
    for number, action in enumerate(schedule):
        name = machine.actors[action.who].name
        node = state.nodes[action.who]
        try:
            reached, answer = machine.act(state, action)
        except Violation as violation:
            yield f"{number:4} {name:10} {_place(node)} {NAMES[node.kind]}"
            yield f"     VIOLATION: {violation}"
            return
        yield f"{number:4} {name:10} {_told(machine, state, reached, action, answer)}"
        state = reached
        try:
            machine.check(state)
        except Violation as violation:
            yield f"     VIOLATION: {violation}"
            return
    if all(state.ended(who) for who in range(machine.roles)):
        try:
            machine.conclude(state)
        except Violation as violation:
            yield f"     VIOLATION at the end: {violation}"


def explained(machine: Machine, failure: Failure, mutant: str = "") -> str:
    """A failure with its schedule, told and ready to be replayed."""
    names = [actor.name for actor in machine.actors]
    schedule = written(failure.schedule, names)
    command = "python -m tests.explore replay " + (f"--mutant {mutant} " if mutant else "")
    lines = [
        f"{machine.scenario.name}: {failure.message}",
        *replay(machine, failure.schedule),
        f"replay: {command}{machine.scenario.name} '{schedule}'",
    ]
    return "\n".join(lines)


def _told(machine: Machine, state: State, reached: State, action: Action, answer: int) -> str:
    node = state.nodes[action.who]
    if action.mark == KILL:
        return "is killed"
    if action.mark == STOP:
        return "is stopped, for ever"
    if node.kind == operation.ASK:
        return f"{_place(node)} asks {node.address}, {node.value}: {answer}"
    parts = [_place(node) if action.mark != FLUSH else "its store becomes visible:"]
    if action.mark != FLUSH:
        parts.append(f"{NAMES[node.kind]} {machine.scenario.memory.name(node.address)}")
    changes = list(_changes(machine, state, reached))
    if node.kind == operation.COMPARE_EXCHANGE and not changes:
        found = machine.scenario.memory.describe(node.address, state.memory[node.index])
        wanted = machine.scenario.memory.describe(node.address, node.expected)
        parts.append(f"FAILS: is {found}, expected {wanted}")
    elif node.kind in (operation.LOAD, operation.LOAD_ACQUIRE) and action.mark != FLUSH:
        value = state.memory[node.index]
        parts.append(f"= {machine.scenario.memory.describe(node.address, value)}")
    parts.extend(changes)
    if reached.ledger != state.ledger:
        parts.append(f"| {reached.ledger}")
    if reached.ended(action.who):
        parts.append("(ends)")
    return " ".join(parts)


def _changes(machine: Machine, state: State, reached: State) -> Iterator[str]:
    for word, before, after in zip(
        machine.scenario.memory.words, state.memory, reached.memory, strict=True
    ):
        if before != after:
            yield f"{word.name}: {word.decode(before)} -> {word.decode(after)}"


def _place(node: Node) -> str:
    name, file, line = node.where
    return f"{name} ({relpath(realpath(file))}:{line})"
