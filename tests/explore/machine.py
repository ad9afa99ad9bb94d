"""One step of a scenario: from a global state to the next.

A state is the memory, the node of each actor, the ledger, and (with store buffers) what each actor
has stored and nobody else sees yet.  Its key is a 128-bit hash that each step updates in place
(Zobrist): a random number for every (word, value), (actor, node), ledger and buffer, all xor-ed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from tests.explore import operation
from tests.explore.actor import Actor, Node
from tests.explore.memory import SHARED
from tests.explore.operation import Violation, signed
from tests.explore.scenario import Role, Scenario
from tests.explore.schedule import FLUSH, KILL, STOP, Action
from tests.explore.translation import Translation

Buffer = tuple[tuple[int, int], ...]

ALONE_STEPS_MAX: Final = 20_000
BUFFER_MAX: Final = 8


class State:
    """One global state; nobody changes what it says."""

    __slots__ = ("buffers", "key", "ledger", "memory", "nodes", "shared")

    def __init__(
        self,
        memory: tuple[int, ...],
        nodes: tuple[Node, ...],
        ledger: Hashable,
        buffers: tuple[Buffer, ...],
        shared: int,
        key: int,
    ) -> None:
        self.memory = memory
        self.nodes = nodes
        self.ledger = ledger
        self.buffers = buffers
        self.shared = shared
        """Hash of what invariants see: memory, ledger, who is dead."""
        self.key = key

    def killed(self, actor: int) -> bool:
        return self.nodes[actor].kind == operation.KILLED

    def stopped(self, actor: int) -> bool:
        return self.nodes[actor].kind == operation.STOPPED

    def ended(self, actor: int) -> bool:
        return self.nodes[actor].kind >= operation.DONE


class _Salts(dict[Hashable, int]):
    """A random number for every value that asks for one."""

    def __init__(self, draw: Callable[[], int]) -> None:
        super().__init__()
        self._draw = draw

    def __missing__(self, value: Hashable) -> int:
        salt = self[value] = self._draw()
        return salt


class Machine:
    """A scenario that can be stepped."""

    def __init__(self, scenario: Scenario, translation: Translation) -> None:
        self.scenario = scenario
        self._rules = scenario.rules
        chance = random.Random(20)

        def draw() -> int:
            return chance.getrandbits(128)

        memory = scenario.memory
        self._words = [_Salts(draw) for _ in memory.words]
        self._ledgers = _Salts(draw)
        self._buffers = _Salts(draw)
        self._watched = [False] * len(memory.words)
        for index in scenario.watched:
            self._watched[index] = True
        self._buffered = scenario.store_buffers
        self._delayed = [word.role == SHARED for word in memory.words]

        def actor(
            name: str,
            program: Callable[..., int],
            arguments: Sequence[int],
            private: Mapping[int, int],
        ) -> Actor:
            return Actor(name, program, arguments, memory, translation, draw, private)

        def opened(role: Role, memory: tuple[int, ...]) -> tuple[Actor, tuple[int, ...]]:
            private: dict[int, int] = {}
            if role.opening is not None:
                opening = actor(role.name, role.opening, role.opening_arguments, {})
                memory = self._run_first(memory, opening)
                private = opening.left
            return actor(role.name, role.program, role.arguments, private), memory

        memory.frozen = False
        setup = actor("setup", scenario.setup, scenario.setup_arguments, {})
        blank = tuple(0 for _ in memory.words)
        first = self._poked(self._run_first(blank, setup))
        memory.constants = {word.address: first[i] for i, word in enumerate(memory.words)}
        memory.frozen = True

        self.roles = len(scenario.roles)
        actors = []
        epilogue = () if scenario.epilogue is None else (scenario.epilogue,)
        for role in (*scenario.roles, *epilogue):
            made, first = opened(role, first)
            actors.append(made)
        self.actors = actors
        self._ends = {
            KILL: [each.killed.salt ^ draw() for each in actors],
            STOP: [each.stopped.salt ^ draw() for each in actors],
        }
        self.first = self._state(first, scenario.rules.first(first))

    def _run_first(self, memory: tuple[int, ...], actor: Actor) -> tuple[int, ...]:
        """Run one actor alone, before the scenario begins; what memory is then."""
        self.actors = [actor]
        watched, self._watched = self._watched, [False] * len(memory)
        buffered, self._buffered = self._buffered, False
        state = State(memory, (actor.start(),), None, ((),), 0, 0)
        reached = self._alone(state, 0).memory
        self._watched, self._buffered = watched, buffered
        return reached

    def _poked(self, first: tuple[int, ...]) -> tuple[int, ...]:
        memory = list(first)
        for address, value in self.scenario.poke.items():
            memory[self.scenario.memory.index[address]] = signed(value)
        return tuple(memory)

    def _state(self, memory: tuple[int, ...], ledger: Hashable) -> State:
        """The state in which nobody has done anything."""
        nodes = tuple(actor.start() for actor in self.actors)
        shared = self._ledgers[ledger]
        for index, value in enumerate(memory):
            shared ^= self._words[index][value]
        key = shared
        for node in nodes:
            key ^= node.salt
        state = State(memory, nodes, ledger, tuple(() for _ in nodes), shared, key)
        for who, node in enumerate(nodes):
            if node.silent:
                raise ValueError(f"{self.actors[who].name} must begin with a step: an ask, say")
        return state

    # --- one step -------------------------------------------------------------------------------

    def choices(self, state: State, who: int) -> Sequence[int]:
        """The answers to this actor's question."""
        node = state.nodes[who]
        return self._rules.answers(state, who, node.address, node.value)

    def enabled(self, state: State, who: int) -> bool:
        """With store buffers, a locked operation waits until its actor's buffer is empty."""
        kind = state.nodes[who].kind
        if kind >= operation.DONE:
            return False
        return not (state.buffers[who] and kind in operation.LOCKED)

    def step(self, state: State, who: int, answer: int = 0) -> State:
        """Perform the operation that an actor waits for, and the silent ones behind it."""
        node = before = state.nodes[who]
        memory: Sequence[int] = state.memory
        ledger = state.ledger
        shared = state.shared
        buffers = state.buffers
        follow = self.actors[who].follow
        while True:
            kind = node.kind
            index = node.index
            if kind == operation.ASK:
                result = answer
            elif kind == operation.TELL:
                told = self._rules.told(
                    state, ledger, who, node.address, node.expected, node.value, memory
                )
                if told is not ledger:
                    shared ^= self._ledgers[ledger] ^ self._ledgers[told]
                    ledger = told
                result = 0
            else:
                former = memory[index]
                if kind == operation.COMPARE_EXCHANGE:
                    result = former
                    value = node.value if former == node.expected else former
                elif kind == operation.LOAD_ACQUIRE or kind == operation.LOAD:
                    if self._buffered and buffers[who]:
                        former = _forwarded(buffers[who], index, former)
                    result = value = former
                    index = -1
                elif kind == operation.FETCH_ADD:
                    result = former
                    value = signed(former + node.value)
                elif kind == operation.EXCHANGE:
                    result = former
                    value = node.value
                else:
                    result = 0
                    value = node.value
                    if self._buffered and self._delayed[index]:
                        buffers = self._delay(buffers, who, index, value)
                        index = -1
                if index >= 0 and value != former:
                    if memory is state.memory:
                        memory = list(memory)
                    memory[index] = value  # type: ignore[index]
                    salts = self._words[index]
                    shared ^= salts[former] ^ salts[value]
                    if self._watched[index]:
                        wrote = self._rules.wrote(state, ledger, who, index, former, value, memory)
                        if wrote is not ledger:
                            shared ^= self._ledgers[ledger] ^ self._ledgers[wrote]
                            ledger = wrote
            reached = node.edges.get(result)
            node = follow(node, result) if reached is None else reached
            if not node.silent:
                break
        key = state.key ^ state.shared ^ shared ^ before.salt ^ node.salt
        if buffers is not state.buffers:
            key ^= self._buffers[who, state.buffers[who]] ^ self._buffers[who, buffers[who]]
        nodes = (*state.nodes[:who], node, *state.nodes[who + 1 :])
        return State(
            memory if memory is state.memory else tuple(memory),
            nodes,
            ledger,
            buffers,
            shared,
            key,
        )

    def _delay(
        self, buffers: tuple[Buffer, ...], who: int, index: int, value: int
    ) -> tuple[Buffer, ...]:
        buffer = (*buffers[who], (index, value))
        if len(buffer) > BUFFER_MAX:
            raise Violation(f"{self.actors[who].name} stores {BUFFER_MAX} times without a fence")
        return (*buffers[:who], buffer, *buffers[who + 1 :])

    def flush(self, state: State, who: int) -> State:
        """The oldest store that only its actor sees becomes visible to all."""
        (index, value), *rest = state.buffers[who]
        former = state.memory[index]
        memory = (*state.memory[:index], value, *state.memory[index + 1 :])
        ledger = state.ledger
        if self._watched[index] and value != former:
            ledger = self._rules.wrote(state, ledger, who, index, former, value, memory)
        salts = self._words[index]
        shared = state.shared ^ salts[former] ^ salts[value]
        shared ^= self._ledgers[state.ledger] ^ self._ledgers[ledger]
        buffers = (*state.buffers[:who], tuple(rest), *state.buffers[who + 1 :])
        key = state.key ^ state.shared ^ shared
        key ^= self._buffers[who, state.buffers[who]] ^ self._buffers[who, buffers[who]]
        return State(memory, state.nodes, ledger, buffers, shared, key)

    def kill(self, state: State, who: int) -> State:
        return self._end(state, who, self.actors[who].killed, KILL)

    def stop(self, state: State, who: int) -> State:
        return self._end(state, who, self.actors[who].stopped, STOP)

    def key_of_end(self, state: State, who: int, mark: str) -> int:
        """The key of the state in which this actor is killed or stopped."""
        return state.key ^ state.nodes[who].salt ^ self._ends[mark][who]

    def _end(self, state: State, who: int, end: Node, mark: str) -> State:
        nodes = (*state.nodes[:who], end, *state.nodes[who + 1 :])
        key = self.key_of_end(state, who, mark)
        shared = state.shared ^ self._ends[mark][who] ^ end.salt  # invariants see who is dead
        return State(state.memory, nodes, state.ledger, state.buffers, shared, key)

    def act(self, state: State, action: Action) -> tuple[State, int]:
        """What an action makes of a state, and the answer to its actor's question."""
        who = action.who
        if action.mark == KILL:
            return self.kill(state, who), 0
        if action.mark == STOP:
            return self.stop(state, who), 0
        if action.mark == FLUSH:
            return self.flush(state, who), 0
        if state.nodes[who].kind == operation.ASK:
            answer = self.choices(state, who)[action.answer]
            return self.step(state, who, answer), answer
        return self.step(state, who), 0

    # --- the end --------------------------------------------------------------------------------

    def conclude(self, state: State) -> State:
        """Run the epilogue alone and check the whole run."""
        if self.scenario.epilogue is not None:
            state = self._alone(state, self.roles)
        self._rules.finished(state)
        return state

    def _alone(self, state: State, who: int) -> State:
        for _ in range(ALONE_STEPS_MAX):
            if state.buffers[who]:
                state = self.flush(state, who)
            elif state.ended(who):
                return state
            elif state.nodes[who].kind == operation.ASK:
                answers = self.choices(state, who)
                if not answers:
                    raise Violation(f"{self.actors[who].name} waits for ever")
                state = self.step(state, who, answers[0])
            else:
                state = self.step(state, who)
        raise Violation(f"{self.actors[who].name} alone does not end in {ALONE_STEPS_MAX} steps")

    def check(self, state: State) -> None:
        self._rules.check(state)


def _forwarded(buffer: Buffer, index: int, value: int) -> int:
    for each, stored in buffer:
        if each == index:
            value = stored
    return value
