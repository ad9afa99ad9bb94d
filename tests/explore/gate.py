"""Commits on durable queues, without a ring: a committer, who repairs for it, and the journaler.

What a transaction does is two words that become its number.  The journaler sees one after the
other; at what it takes for a moment both are the same.
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
    commit_excuse,
    commit_is_inside,
    commit_passed,
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
CONFIRMS: Final = 1
EXCUSED: Final = 2
MOMENT: Final = 3


@program
def nothing_is_committed() -> int:
    store(STATE, at.TRANSACTION_NONE)
    return 0


@program
def happen(number: int) -> int:
    """As of a ring: whoever comes second changes nothing."""
    compare_exchange(DONE, number - 1, number)
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
        late = commit_passed(TRANSACTIONS, RECORD)
        store_release(STATE, at.TRANSACTION_NONE)
        tell(CONFIRMS, number, max(stamp, late))
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
def clearing(excused: int) -> int:
    """Nobody is inside, or its serial, or 0: look again."""
    if commit_is_inside(RECORD, STATE, excused) == 0:
        return excused
    serial = commit_copy(RECORD, STATE, COPY)
    if serial != 0:
        if ask(IS_THERE_ROOM) == 1:
            happen(load(operation_at(COPY, 0) + at.OPERATION_WHERE_AT))
        else:
            commit_excuse(RECORD, serial)
            tell(EXCUSED, serial)
    forget_copy()
    return serial


@program
def journaling() -> int:
    """What ipc/broker/moment.c does."""
    whole = 0
    excused = -1
    while ask(IS_THERE_MORE, whole) == 1:
        begun = commit_begun(TRANSACTIONS)
        if begun != whole:
            cleared = clearing(excused)
            if cleared == 0:
                continue
            excused = cleared
        first = load_acquire(DONE)
        second = load_acquire(DONE + 8)
        if commit_begun(TRANSACTIONS) == begun:
            tell(MOMENT, begun, first << 8 | second)
            whole = begun
    return 0


@dataclass(frozen=True, slots=True)
class Known:
    """The last moment, who confirms with it, how many were decided, and which were excused."""

    begun: int = 0
    first: int = 0
    second: int = 0
    confirms: frozenset[tuple[int, int]] = frozenset()
    excused: frozenset[int] = frozenset()
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
        if event == EXCUSED:
            return replace(ledger, excused=ledger.excused | {first})
        if event == CONFIRMS:
            known = replace(ledger, confirms=ledger.confirms | {(first, second)})
        else:
            known = replace(ledger, begun=first, first=second >> 8, second=second & 255)
            half = max(known.first, known.second)
            if known.first != known.second and half not in known.excused:
                raise Violation(f"transaction {half} is half in a moment")
        for number, stamp in known.confirms:
            if stamp <= known.begun and number > min(known.first, known.second):
                raise Violation(f"transaction {number} is confirmed, and not on disk")
        return known

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == IS_THERE_ROOM:
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
    memory.word("record.parts", RECORD + at.TRANSACTION_PARTS_AT)
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
