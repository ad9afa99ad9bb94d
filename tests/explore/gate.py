"""Commits on durable queues, without a ring: a committer, who repairs for it, and the journaler.

What a transaction does is two words that become its number: what it acknowledges, and what it
publishes, if there is room.  The journaler sees one after the other; at what it takes for a moment
both are the same, or it has noted that the second has no place yet.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shmbroker.core import layout as at
from shmbroker.core.atomics import compare_exchange, load, load_acquire, store, store_release
from shmbroker.core.commit import (
    commit_add,
    commit_begin,
    commit_begun,
    commit_copy,
    commit_count,
    commit_decide,
    commit_is_inside,
    operation_at,
)
from tests.explore.memory import PRIVATE_AT, Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

TRANSACTIONS: Final = 0x1000
RECORD: Final = 0x2000
STATE: Final = 0x3000
DONE: Final = 0x4000
COPY: Final = PRIVATE_AT

IS_THERE_MORE: Final = 1
IS_THERE_ROOM: Final = 2
IS_DEAD: Final = 3
IS_IN_THE_SHARE: Final = 4
CONFIRMS: Final = 1
MOMENT: Final = 2


@program
def nothing_is_committed() -> int:
    store(STATE, at.TRANSACTION_NONE)
    return 0


@program
def acknowledged(number: int) -> int:
    return compare_exchange(DONE, number - 1, number)


@program
def happen(number: int) -> int:
    """As of a ring: whoever comes second changes nothing."""
    acknowledged(number)
    compare_exchange(DONE + 8, number - 1, number)
    return 0


@program
def committing_often(times: int) -> int:
    for number in range(1, times + 1):
        commit_begin(RECORD, 1)
        commit_add(RECORD, number, number, number)
        store_release(STATE, at.TRANSACTION_PREPARED)
        stamp = commit_decide(TRANSACTIONS, RECORD, STATE)
        happen(number)
        store_release(STATE, at.TRANSACTION_NONE)
        tell(CONFIRMS, number, stamp)
    return 0


@program
def finishing(dead: int) -> int:
    if ask(IS_DEAD, dead) and load_acquire(STATE) == at.TRANSACTION_COMMITTED:
        commit_count(TRANSACTIONS)  # it may have died before it was
        happen(load(operation_at(RECORD, 0) + at.OPERATION_WHERE_AT))
    return 0


@program
def forget_copy() -> int:
    for each in range(0, at.TRANSACTION_OPERATIONS_AT + at.OPERATION_BYTES, 8):
        store(COPY + each, 0)
    return 0


@program
def clearing(helped: int) -> int:
    """Nobody is inside, or its serial, or 0: look again."""
    if commit_is_inside(RECORD, STATE, helped) == 0:
        return helped
    serial = commit_copy(RECORD, STATE, COPY)
    if serial != 0:
        if ask(IS_THERE_ROOM) == 1:
            happen(load(operation_at(COPY, 0) + at.OPERATION_WHERE_AT))
        else:
            acknowledged(load(operation_at(COPY, 0) + at.OPERATION_WHERE_AT))
    forget_copy()
    return serial


@program
def looking(helped: int, unplaced: int) -> int:
    """Which message has no place yet, of the one that was helped: what unplaced_see does."""
    if commit_copy(RECORD, STATE, COPY) == helped:
        number = load(operation_at(COPY, 0) + at.OPERATION_WHERE_AT)
        if load_acquire(DONE + 8) < number:
            unplaced = number
    forget_copy()
    return unplaced


@program
def journaling() -> int:
    """What ipc/broker/moment.c and gather.c do; the frame that has a message says so."""
    whole = 0
    helped = -1
    written = 0
    unplaced = 0
    while ask(IS_THERE_MORE, whole) == 1:
        begun = commit_begun(TRANSACTIONS)
        if begun != whole:
            cleared = clearing(helped)
            if cleared == 0:
                continue
            helped = cleared
            unplaced = looking(helped, unplaced)
        first = load_acquire(DONE)
        second = load_acquire(DONE + 8)
        if commit_begun(TRANSACTIONS) == begun:
            if begun != whole or ask(IS_IN_THE_SHARE) == 1:
                written = second
            if written >= unplaced:
                unplaced = 0
            tell(MOMENT, first << 16 | written << 8 | unplaced, begun)
            whole = begun
    return 0


@dataclass(frozen=True, slots=True)
class Known:
    """The last moment, who confirms with it, and how many were decided."""

    begun: int = 0
    first: int = 0
    second: int = 0
    confirms: frozenset[tuple[int, int]] = frozenset()
    decided: int = 0


class CommitsAreWhole(Rules):
    def __init__(self, begun: int, state: int) -> None:
        self._begun = begun
        self._state = state

    def first(self, memory: Sequence[int]) -> Hashable:
        return Known()

    def wrote(
        self,
        before: View,
        ledger: Hashable,
        actor: int,
        index: int,
        old: int,
        new: int,
        memory: Sequence[int],
    ) -> Hashable:
        assert isinstance(ledger, Known)
        if index == self._state:
            decides = new == at.TRANSACTION_COMMITTED
            return replace(ledger, decided=ledger.decided + 1) if decides else ledger
        if new > ledger.decided:
            raise Violation(f"transaction {new} happens, and is not decided")
        return ledger

    def told(
        self,
        before: View,
        ledger: Hashable,
        actor: int,
        event: int,
        first: int,
        second: int,
        memory: Sequence[int],
    ) -> Hashable:
        assert isinstance(ledger, Known)
        if event == CONFIRMS:
            known = replace(ledger, confirms=ledger.confirms | {(first, second)})
        else:
            written, unplaced = first >> 8 & 255, first & 255
            if 0 < unplaced <= written:
                raise Violation(f"transaction {unplaced} has a message twice in a moment")
            known = replace(ledger, begun=second, first=first >> 16, second=max(written, unplaced))
            if known.first != known.second:
                half = max(known.first, known.second)
                raise Violation(f"transaction {half} is half in a moment")
        for number, stamp in known.confirms:
            if stamp <= known.begun and number > min(known.first, known.second):
                raise Violation(f"transaction {number} is confirmed, and not on disk")
        return known

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question in (IS_THERE_ROOM, IS_IN_THE_SHARE):
            return (0, 1)
        if question == IS_DEAD:
            return (1,) if view.killed(argument) else (0,) if view.ended(argument) else ()
        if view.memory[self._begun] != argument:
            return (1,)
        return (0,) if view.ended(0) and view.ended(1) else (1,)


def gate_scenario() -> Scenario:
    memory = Memory()
    begun = memory.word("begun", TRANSACTIONS + at.TRANSACTIONS_BEGUN_AT)
    state = memory.word("state", STATE)
    memory.word("record.count", RECORD + at.TRANSACTION_COUNT_AT)
    memory.word("record.durable", RECORD + at.TRANSACTION_DURABLE_AT)
    memory.word("record.serial", RECORD + at.TRANSACTION_SERIAL_AT)
    for each in range(0, at.OPERATION_BYTES, 8):
        memory.word(f"operation[{each}]", RECORD + at.TRANSACTION_OPERATIONS_AT + each)
    done = memory.word("done[0]", DONE)
    memory.word("done[1]", DONE + 8)
    return Scenario(
        name="commit-gate",
        memory=memory,
        setup=nothing_is_committed,
        setup_arguments=(),
        roles=(
            Role("committer", committing_often, (2,), mortal=True),
            Role("repairer", finishing, (0,)),
            Role("journaler", journaling),
        ),
        watched=(state, done),
        rules=CommitsAreWhole(begun, state),
        kills=1,
        answers_max=2,
    )
