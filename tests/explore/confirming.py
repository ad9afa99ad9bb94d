"""The barrier and its set of gates, without messages: who moves gates, joins, leaves, waits.

What is to hold: the barrier never goes back, and when it moves, all gates have passed it that are
in the set: the journal's, and those of replicas whose join is done.  Who waits for a confirm is
woken when the barrier has come there, whoever has died on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from shmbroker.core import layout as at
from shmbroker.core.atomics import store
from shmbroker.core.barrier import barrier_join, barrier_leave, barrier_raise, is_confirmed
from shmbroker.core.bell import ASLEEP, bell_arm, bell_ring
from shmbroker.core.gate import gate_adopt, gate_move
from tests.explore.memory import CONSTANT, PRIVATE_AT, Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

RING: Final = 0x1000
PORT: Final = PRIVATE_AT
BASE: Final = 7
EPOCH: Final = 0x7FFF << at.EPOCH_SHIFT
"""It wraps when it moves."""

JOURNAL: Final = 0
NEWCOMER: Final = 1
LEAVER: Final = 2

MAY_SLEEP: Final = 1
IS_IT_MY_TURN: Final = 2

JOINED: Final = 1

WOKEN: Final = 0
REPAIR: Final = 1


@program
def three_gates() -> int:
    """The newcomer's is not in the set yet."""
    store(RING + at.RING_CONFIRMED_AT, EPOCH | BASE)
    store(RING + at.RING_BARRIER_SET_AT, 1 << JOURNAL | 1 << LEAVER)
    store(RING + at.RING_JOURNAL_GATE_AT, 1 + JOURNAL)
    store(RING + at.RING_HEAD_AT, BASE)
    for gate in range(3):
        word = at.GATE_ACTIVE | at.GATE_LASTING << at.GATE_LIFE_SHIFT | BASE
        owner = (gate + 1) << at.GATE_OWNER_SHIFT
        store(RING + at.RING_GATES_AT + gate * at.GATE_BYTES, word | owner)
    return 0


@program
def two_gates() -> int:
    three_gates()
    store(RING + at.RING_BARRIER_SET_AT, 1 << JOURNAL)
    return 0


@program
def port_of(owner: int) -> int:
    store(PORT + at.PORT_HEADER, RING)
    store(PORT + at.PORT_BARRIER, RING + at.RING_CONFIRMED_AT)
    store(PORT + at.PORT_OWNER, owner)
    return 0


@program
def moved() -> int:
    """As gate_moved of ipc/ring/waiting.py."""
    barrier_raise(PORT)
    bell_ring(RING + at.RING_CONFIRM_BELL_AT)
    return 0


@program
def moving(gate: int, last: int) -> int:
    for each in range(last):
        if gate_move(PORT, gate, BASE + each + 1) >= 0:
            moved()
    return 0


@program
def joining(gate: int, last: int) -> int:
    position = barrier_join(PORT, gate)
    tell(JOINED, position)
    return moving(gate, last)


@program
def leaving(gate: int) -> int:
    """Whosever gate it is, at any moment from its join on."""
    ask(IS_IT_MY_TURN, gate)
    barrier_leave(PORT, gate)
    moved()
    return 0


@program
def inheriting(gate: int, last: int) -> int:
    """The next journaler, once the first has ended."""
    ask(IS_IT_MY_TURN, gate)
    gate_adopt(PORT, gate, gate + 1)
    moved()
    return moving(gate, last)


@program
def confirming() -> int:
    """Wait until the first message is confirmed."""
    while True:
        bell_arm(RING + at.RING_CONFIRM_BELL_AT)
        if is_confirmed(PORT, BASE, at.CONFIRM_EFFECTIVE):
            return 0
        if ask(MAY_SLEEP) == REPAIR:
            barrier_raise(PORT)


@program
def repairing() -> int:
    return barrier_raise(PORT)


def position_of(word: int) -> int:
    return word & at.POSITION_MASK


class Known(NamedTuple):
    """What beside the memory matters."""

    joined: bool
    """The newcomer has, and has not left."""


class TheLeastIsConfirmed(Rules):
    """Roles are in the order of gates first: whoever owns gate i is role i."""

    def __init__(self, memory: Memory, last: int) -> None:
        self._barrier = memory.index[RING + at.RING_CONFIRMED_AT]
        self._set = memory.index[RING + at.RING_BARRIER_SET_AT]
        self._bell = memory.index[RING + at.RING_CONFIRM_BELL_AT]
        self._gates = [
            memory.index[RING + at.RING_GATES_AT + gate * at.GATE_BYTES] for gate in range(3)
        ]
        self._last = last

    def first(self, memory: Sequence[int]) -> Known:
        return Known(False)

    def _members(self, memory: Sequence[int], known: Known) -> list[int]:
        """Those that certainly are: not who is only about to join."""
        bits = memory[self._set]
        if not known.joined:
            bits &= ~(1 << NEWCOMER)
        return [gate for gate in range(3) if bits >> gate & 1]

    def wrote(
        self,
        before: View,
        ledger: object,
        actor: int,
        index: int,
        old: int,
        new: int,
        memory: Sequence[int],
    ) -> Known:
        known = cast(Known, ledger)
        if index == self._set:
            return Known(known.joined and bool(new >> NEWCOMER & 1))
        if position_of(new) < position_of(old):
            raise Violation("the barrier went back")
        if position_of(new) == position_of(old):
            return known
        for gate in self._members(memory, known):
            if position_of(memory[self._gates[gate]]) < position_of(new):
                raise Violation(f"the barrier has passed gate {gate}")
        return known

    def told(
        self,
        before: View,
        ledger: object,
        actor: int,
        event: int,
        first: int,
        second: int,
        memory: Sequence[int],
    ) -> Known:
        if first != position_of(memory[self._barrier]):
            raise Violation(f"it joined at {first}, and the barrier is elsewhere")
        return Known(bool(memory[self._set] >> NEWCOMER & 1))

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == IS_IT_MY_TURN:
            is_over = view.ended(argument)
            is_in = argument == NEWCOMER and cast(Known, view.ledger).joined
            return (0,) if is_over or is_in or argument == LEAVER else ()
        if any(view.killed(each) for each in range(3)):
            return (REPAIR,)
        return () if view.memory[self._bell] & ASLEEP else (WOKEN,)

    def finished(self, view: View) -> None:
        if position_of(view.memory[self._barrier]) != BASE + self._last:
            raise Violation("not all is confirmed that all gates have passed")


def _memory() -> Memory:
    memory = Memory()
    memory.word("barrier", RING + at.RING_CONFIRMED_AT)
    memory.word("set", RING + at.RING_BARRIER_SET_AT)
    memory.word("copied", RING + at.RING_COPIED_AT, CONSTANT)
    memory.word("replicate", RING + at.SETTING_REPLICATE_AT, CONSTANT)
    memory.word("journal's gate", RING + at.RING_JOURNAL_GATE_AT, CONSTANT)
    memory.word("head", RING + at.RING_HEAD_AT)
    memory.word("confirm bell", RING + at.RING_CONFIRM_BELL_AT)
    for gate in range(3):
        memory.word(f"gate[{gate}]", RING + at.RING_GATES_AT + gate * at.GATE_BYTES)
    return memory


def _role(name: str, program: object, owner: int, *arguments: int, harmed: bool = False) -> Role:
    assert callable(program)
    return Role(name, program, arguments, port_of, (owner,), mortal=harmed, stoppable=harmed)


def _scenario(name: str, setup: object, roles: tuple[Role, ...], stops: int = 0) -> Scenario:
    assert callable(setup)
    memory = _memory()
    last = roles[0].arguments[1]
    watched = RING + at.RING_CONFIRMED_AT, RING + at.RING_BARRIER_SET_AT
    return Scenario(
        name=name,
        memory=memory,
        setup=setup,
        setup_arguments=(),
        roles=roles,
        epilogue=_role("survivor", repairing, 9),
        rules=TheLeastIsConfirmed(memory, last),
        watched=tuple(memory.index[each] for each in watched),
        kills=1,
        stops=stops,
    )


def replica_dropped() -> Scenario:
    """A replica joins and is dropped, alive, dead or stopped, while a message is confirmed."""
    return _scenario(
        "barrier-set",
        two_gates,
        (
            _role("journaler", moving, 1, JOURNAL, 1),
            _role("replica", joining, 2, NEWCOMER, 1, harmed=True),
            _role("dropper", leaving, 3, NEWCOMER),
            _role("publisher", confirming, 4),
        ),
        stops=1,
    )


def set_changed() -> Scenario:
    """One replica joins while another leaves."""
    return _scenario(
        "barrier-set-changed",
        three_gates,
        (
            _role("journaler", moving, 1, JOURNAL, 2),
            _role("replica", joining, 2, NEWCOMER, 2),
            _role("dropper", leaving, 3, LEAVER),
        ),
    )


def mover_dead() -> Scenario:
    """The journaler dies, and another goes on, while somebody waits."""
    return _scenario(
        "barrier-set-adopted",
        two_gates,
        (
            _role("journaler", moving, 1, JOURNAL, 1, harmed=True),
            _role("heir", inheriting, 2, JOURNAL, 1),
            _role("publisher", confirming, 4),
        ),
    )
