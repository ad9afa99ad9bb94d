"""Breadth first through all states of a scenario: the first failure has a shortest schedule.

Every state that is reached for the first time is checked; invariants see only memory, ledger and
who is dead, so they run once for each combination of those.  A state is remembered by its 128-bit
key and its number; only the frontier holds whole states.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass
from typing import Final

from tests.explore import operation
from tests.explore.graph import NONE, Graph
from tests.explore.machine import Machine, State
from tests.explore.operation import Violation
from tests.explore.scenario import Scenario
from tests.explore.schedule import FLUSH, KILL, STEP, STOP, Action
from tests.explore.translation import Translation

NOBODY_CAN_GO_ON: Final = "nobody can go on"
CANNOT_FINISH: Final = "from here the run can never finish"
CANNOT_GO_ON: Final = "from here {}, running alone, never comes back from its call"


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and the shortest way there."""

    message: str
    schedule: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search has found."""

    scenario: str
    states: int
    steps: int
    depth: int
    endings: int
    local: int
    """Local states of all actors: how much kernel code was really run."""
    seconds: float
    complete: bool
    failure: Failure | None

    def __str__(self) -> str:
        end = "to the end" if self.complete else "cut"
        rate = self.states / max(self.seconds, 1e-9)
        return (
            f"{self.scenario}: {self.states:,} states {end}, depth {self.depth}, "
            f"{self.steps:,} steps, {self.endings:,} endings, {self.local:,} local states, "
            f"{self.seconds:.1f} s, {rate:,.0f} states/s"
        )


def explore(
    scenario: Scenario,
    translation: Translation | None = None,
    *,
    states_max: int = 1 << 30,
    seconds_max: float = float("inf"),
    progress: bool = False,
) -> Outcome:
    """Search until the end, the first failure, or a bound."""
    machine = Machine(scenario, translation or Translation())
    return explore_from(
        machine, machine.first,
        states_max=states_max, seconds_max=seconds_max, progress=progress,
    )  # fmt: skip


def explore_from(
    machine: Machine,
    first: State,
    *,
    states_max: int = 1 << 30,
    seconds_max: float = float("inf"),
    progress: bool = False,
) -> Outcome:
    """Search what can come after a state."""
    search = Search(machine, first)
    collecting = gc.isenabled()
    gc.disable()  # millions of states, and not one cycle among them
    try:
        return search.run(states_max, seconds_max, progress)
    finally:
        if collecting:
            gc.enable()


class Search:
    """One search of one scenario."""

    def __init__(self, machine: Machine, first: State) -> None:
        self.machine = machine
        self.scenario = scenario = machine.scenario
        self._first = first
        self._roles = range(self.machine.roles)
        self._answers = scenario.answers_max
        self._may_end = bool(scenario.kills or scenario.stops)
        self._flush_at = len(self._roles) * self._answers
        columns = self._flush_at + (len(self._roles) if scenario.store_buffers else 0)
        self.graph = Graph(columns)
        self._blank = [NONE] * columns
        self._numbers: dict[int, int] = {}
        self._checked: set[int] = set()
        self._concluded: set[int] = set()
        self._steps = 0
        self._endings = 0
        self._finished = bytearray()
        self._resting = [bytearray() for _ in self._roles]
        self._next: list[State] = []
        self._memories: dict[int, tuple[int, ...]] = {}
        self._tried: Action | None = None

    def run(self, states_max: int, seconds_max: float, progress: bool) -> Outcome:
        began = time.monotonic()
        depth = 0
        failure = None
        number = 0
        frontier: list[State] = []
        try:
            self._reached(self._first, 0, 0)
            while self._next and len(self._numbers) < states_max:
                frontier, self._next = self._next, []
                self._memories = {}
                depth += 1
                for state in frontier:
                    self._expand(state, number)
                    number += 1
                seconds = time.monotonic() - began
                if progress:
                    _report(depth, len(self._numbers), len(frontier), seconds)
                if seconds > seconds_max:
                    break
        except Violation as violation:
            tried = [] if self._tried is None else [self._tried]
            failure = Failure(str(violation), (*self._path(number), *tried))
        complete = not self._next and failure is None
        if failure is None:
            failure = self._looking_back()
        return Outcome(
            scenario=self.scenario.name,
            states=len(self._numbers),
            steps=self._steps,
            depth=depth,
            endings=self._endings,
            local=sum(actor.nodes for actor in self.machine.actors),
            seconds=time.monotonic() - began,
            complete=complete,
            failure=failure,
        )

    def _path(self, number: int) -> tuple[Action, ...]:
        return tuple(Action.unpacked(each) for each in self.graph.path(number))

    def _expand(self, state: State, number: int) -> None:
        """Take every step from a state."""
        machine = self.machine
        row = self._blank[:]
        ended = 0
        for who in self._roles:
            kind = state.nodes[who].kind
            if state.buffers[who]:
                row[self._flush_at + who] = self._flushed(state, who, number)
            if kind >= operation.DONE:
                ended += 1
                self._resting[who].append(1)
            elif kind == operation.ASK:
                self._resting[who].append(1)
                answers = machine.choices(state, who)
                if len(answers) > self._answers:
                    raise ValueError(f"more than {self._answers} answers: raise answers_max")
                for index, answer in enumerate(answers):
                    self._tried = action = Action(who, STEP, index)
                    reached = machine.step(state, who, answer)
                    row[who * self._answers + index] = self._reached(
                        reached, number, action.packed()
                    )
            else:
                self._resting[who].append(0)
                if machine.enabled(state, who):
                    self._tried = _STEPS[who]
                    reached = machine.step(state, who)
                    row[who * self._answers] = self._reached(reached, number, _PACKED[who])
        if self._may_end and ended < len(self._roles):
            self._end_somebody(state, number)
        if row == self._blank:
            self._ending(state, ended)
        else:
            self._finished.append(0)
        self.graph.edges.extend(row)

    def _flushed(self, state: State, who: int, number: int) -> int:
        self._tried = action = Action(who, FLUSH)
        return self._reached(self.machine.flush(state, who), number, action.packed())

    def _end_somebody(self, state: State, number: int) -> None:
        """Kill or stop each actor that may be, within the budget."""
        scenario = self.scenario
        kinds = [node.kind for node in state.nodes]
        may_kill = kinds.count(operation.KILLED) < scenario.kills
        may_stop = kinds.count(operation.STOPPED) < scenario.stops
        for who, role in enumerate(scenario.roles):
            if kinds[who] >= operation.DONE:
                continue
            # what a process has stored is visible before anybody can know that it is dead
            if may_kill and role.mortal and not state.buffers[who]:
                self._to_end(state, number, who, KILL)
            if may_stop and role.stoppable:
                self._to_end(state, number, who, STOP)

    def _to_end(self, state: State, number: int, who: int, mark: str) -> None:
        """Most of these states are known: they are made only if they are not."""
        machine = self.machine
        if machine.key_of_end(state, who, mark) in self._numbers:
            self._steps += 1
            return
        self._tried = action = Action(who, mark)
        ended = machine.kill(state, who) if mark == KILL else machine.stop(state, who)
        self._reached(ended, number, action.packed())

    def _reached(self, state: State, parent: int, action: int) -> int:
        """The number of a state; if it is new, check it and put it on the frontier."""
        self._steps += 1
        numbers = self._numbers
        number = numbers.get(state.key)
        if number is None:
            number = numbers[state.key] = len(numbers)
            self.graph.add(parent, action)
            if state.shared not in self._checked:
                self._checked.add(state.shared)
                self.machine.check(state)
            # many states of a depth have the same memory: keep it once
            state.memory = self._memories.setdefault(state.shared, state.memory)
            self._next.append(state)
        return number

    def _ending(self, state: State, ended: int) -> None:
        self._tried = None
        if ended < len(self._roles):
            raise Violation(NOBODY_CAN_GO_ON)
        self._finished.append(1)
        self._endings += 1
        if state.shared not in self._concluded:
            self._concluded.add(state.shared)
            self.machine.conclude(state)

    def _looking_back(self) -> Failure | None:
        """The questions that need the whole graph; states that were cut off count as good."""
        missing = len(self._numbers) - len(self._finished)
        self._finished.extend(b"\1" * missing)
        for _ in range(missing):
            self.graph.edges.extend(self._blank)
        stuck = self.graph.first_stuck(self._finished)
        if stuck != NONE:
            return Failure(CANNOT_FINISH, self._path(stuck))
        for who in self._roles:
            self._resting[who].extend(b"\1" * missing)
            columns = list(range(who * self._answers, (who + 1) * self._answers))
            if self.scenario.store_buffers:
                columns.append(self._flush_at + who)
            stuck = self.graph.first_stuck(self._resting[who], columns)
            if stuck != NONE:
                message = CANNOT_GO_ON.format(self.scenario.roles[who].name)
                return Failure(message, self._path(stuck))
        return None


_STEPS: Final = tuple(Action(who) for who in range(64))
_PACKED: Final = tuple(action.packed() for action in _STEPS)


def _report(depth: int, states: int, frontier: int, seconds: float) -> None:
    sys.stderr.write(
        f"\rdepth {depth}, {states:,} states, {frontier:,} at this depth, {seconds:,.0f} s  "
    )
    sys.stderr.flush()
