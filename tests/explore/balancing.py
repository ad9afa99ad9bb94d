"""Balanced sets, without rings: publishers, the broker that changes the set, deleted queues.

A ring is a row of words, one for each generation of its row: who has opened a queue stays in the
ring that it had then.  A message is one word there, with its target.  What is to hold: each choice
is a member, with its target, that was next in turn at one moment of the choice; who was told that a
message is published finds it in exactly one ring of those that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

from shmbroker.core import layout as at
from shmbroker.core.atomics import compare_exchange, load, store
from shmbroker.core.balance import (
    balance_change,
    balance_choose,
    balance_choose_among,
    balance_eligible,
    balance_of,
    balance_put,
    balance_selectors,
    balance_tell,
)
from shmbroker.core.codes import OK, STALE
from shmbroker.core.row import reference_of, row_commit, row_of, row_retire
from tests.explore.memory import BLIND, CONSTANT, PRIVATE_AT, Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

CATALOG: Final = 0x10000000
RING: Final = 0x1000
STARTED: Final = 0x2000
RINGS: Final = 0x100000
RING_ROWS: Final = 4
RING_BYTES: Final = 0x100
GENERATIONS: Final = 2
PLACES: Final = 4
MEMBERS: Final = 3

CHOSEN: Final = PRIVATE_AT
GIVEN: Final = PRIVATE_AT + 0x100
SELECTOR: Final = PRIVATE_AT + 0x180
COPIED: Final = PRIVATE_AT + 0x200

LOCAL: Final = 0
"""The row of the balanced queue; those towards other nodes come behind it."""
ENTRY: Final = CATALOG + at.BALANCE_ENTRIES_AT
SET_ROW: Final = CATALOG + at.BALANCE_COLUMN_AT
VERSION: Final = ENTRY + at.BALANCE_VERSION_AT

SELECTED: Final = ((2, 20), (LOCAL, 0))
"""Who takes a message that this target selects: its ring, else the queue itself."""

TARGET_SHIFT: Final = 32
OWNER_SHIFT: Final = 8

# questions
BEGIN: Final = 1
IS_HE_DEAD: Final = 2

# events
CHOOSES: Final = 1
CHOSE: Final = 2
PUBLISHED: Final = 3
CHOSE_AMONG: Final = 4


def queue_row(row: int) -> int:
    return CATALOG + at.QUEUE_COLUMN_AT + row * at.ROW_BYTES


@program
def append(queue: int, message: int) -> int:
    """Publish in the ring that this queue's handle has, whatever became of the queue."""
    row = queue & at.REFERENCE_INDEX_MASK
    generation = (queue >> at.REFERENCE_INDEX_BITS) & 1
    ring = RINGS + (row * GENERATIONS + generation) * RING_BYTES
    for place in range(PLACES):
        if compare_exchange(ring + 8 * place, 0, message) == 0:
            return 1
    return 0


@program
def queue_at(row: int) -> int:
    """What the set-up's queue in this row is referred to by."""
    return reference_of(1 << at.ROW_GENERATION_SHIFT, row)


@program
def give(index: int, queue: int, target: int) -> int:
    store(GIVEN + index * at.MEMBER_BYTES + at.MEMBER_QUEUE_AT, queue)
    store(GIVEN + index * at.MEMBER_BYTES + at.MEMBER_TARGET_AT, target)
    return 0


@program
def given_forget() -> int:
    for each in range(MEMBERS):
        give(each, 0, 0)
    return 0


@program
def starting(count: int, eligible: int) -> int:
    """A balanced queue and three towards other nodes; so many of them are in the set."""
    store(CATALOG + at.CATALOG_HIGH_AT + 8 * at.QUEUES, RING_ROWS)
    store(CATALOG + at.CATALOG_HIGH_AT + 8 * at.BALANCES, 1)
    for row in range(RING_ROWS):
        row_commit(CATALOG, at.QUEUES, row, 0)
    for row in range(count):
        give(row, queue_at(row), 10 * row)
    balance_tell(RING, balance_put(CATALOG, 0, GIVEN, count, eligible, 0, 0))
    return 0


@program
def published(message: int) -> int:
    """One message, as a program with a handle of the queue publishes it."""
    reference = balance_of(RING)
    while reference != 0:
        tell(CHOOSES, reference)
        if balance_choose(CATALOG, reference, CHOSEN) != OK:
            break
        queue = load(CHOSEN + at.MEMBER_QUEUE_AT)
        target = load(CHOSEN + at.MEMBER_TARGET_AT)
        tell(CHOSE, queue, target)
        store(CHOSEN + at.MEMBER_QUEUE_AT, 0)
        store(CHOSEN + at.MEMBER_TARGET_AT, 0)
        append(queue, message | target << TARGET_SHIFT)
        if row_of(CATALOG, at.QUEUES, queue) >= 0:
            tell(PUBLISHED, message)
            return 1
    store(CHOSEN + at.MEMBER_QUEUE_AT, 0)
    store(CHOSEN + at.MEMBER_TARGET_AT, 0)
    append(queue_at(LOCAL), message)
    tell(PUBLISHED, message)
    return 1


@program
def publishing(owner: int, last: int) -> int:
    ask(BEGIN)
    for number in range(1, last + 1):
        published(owner << OWNER_SHIFT | number)
    return 0


@program
def select(first: int, target: int) -> int:
    """This member, and the queue itself.  Its selector is a word, its target: who publishes wants
    the same."""
    give(0, queue_at(first), target)
    give(1, queue_at(LOCAL), 0)
    store(SELECTOR, target)
    return 0


@program
def selecting_starts(first: int, target: int) -> int:
    starting(0, 0)
    select(first, target)
    balance_change(CATALOG, balance_of(RING), GIVEN, 2, 0, SELECTOR, 8)
    store(SELECTOR, 0)
    return given_forget()


@program
def selecting(first: int, target: int, later: int, last: int) -> int:
    """The broker: another member with another selector, twice."""
    ask(BEGIN)
    select(first, target)
    balance_change(CATALOG, balance_of(RING), GIVEN, 2, 0, SELECTOR, 8)
    select(later, last)
    balance_change(CATALOG, balance_of(RING), GIVEN, 2, 0, SELECTOR, 8)
    store(SELECTOR, 0)
    return given_forget()


@program
def publishing_to_a_selector(wanted: int) -> int:
    """One message that only this target's selector takes."""
    ask(BEGIN)
    reference = balance_of(RING)
    code = balance_choose(CATALOG, reference, CHOSEN)
    turn = load(CHOSEN)
    while code > 0:
        takes = 0
        if balance_selectors(CATALOG, reference, COPIED) == 8 and load(COPIED + 8) == wanted:
            takes = 1
        code = balance_choose_among(CATALOG, reference, turn, load(COPIED), takes, CHOSEN)
        if code == STALE:
            code = 1
    if code == OK:
        queue = load(CHOSEN + at.MEMBER_QUEUE_AT)
        tell(CHOSE_AMONG, queue, load(CHOSEN + at.MEMBER_TARGET_AT))
    store(CHOSEN + at.MEMBER_QUEUE_AT, 0)
    store(CHOSEN + at.MEMBER_TARGET_AT, 0)
    store(COPIED, 0)
    store(COPIED + 8, 0)
    return 0


@program
def changed(first: int, target: int, eligible: int) -> int:
    """The set is this member, then the queue itself."""
    give(0, queue_at(first), target)
    give(1, queue_at(LOCAL), 0)
    balance_change(CATALOG, balance_of(RING), GIVEN, 2, eligible, 0, 0)
    return given_forget()


@program
def changing(eligible: int) -> int:
    """The broker: other members twice, then others are eligible."""
    ask(BEGIN)
    changed(2, 20, 3)
    changed(3, 30, 3)
    balance_eligible(CATALOG, balance_of(RING), eligible)
    return 0


@program
def narrowing(eligible: int) -> int:
    """The broker: others are eligible."""
    ask(BEGIN)
    balance_eligible(CATALOG, balance_of(RING), eligible)
    return 0


@program
def succeeding(broker: int) -> int:
    """Another broker, when the first is dead: it knows nothing of what that one has begun."""
    if ask(IS_HE_DEAD, broker) == 1:
        changed(2, 21, 3)
        changed(1, 11, 3)
    return 0


@program
def deleting(row: int) -> int:
    """The queue in this row is deleted, and another one gets the row."""
    ask(BEGIN)
    row_retire(CATALOG, at.QUEUES, row)
    row_commit(CATALOG, at.QUEUES, row, 0)
    return 0


@program
def replacing() -> int:
    """The set is removed, and the set of another queue gets its row: it has other members."""
    ask(BEGIN)
    balance_tell(RING, 0)
    row_retire(CATALOG, at.BALANCES, 0)
    give(0, queue_at(2), 22)
    give(1, queue_at(3), 33)
    balance_put(CATALOG, 0, GIVEN, 2, 3, 0, 0)
    return given_forget()


Member = tuple[int, int]
Choosing = tuple[int, int, frozenset[Member]]
"""Who chooses from which set, and who may be next."""
Ledger = tuple[tuple[Choosing, ...], frozenset[int]]
"""And the messages that are published."""


class EachOnceAtAMember(Rules):
    def __init__(self, memory: Memory, publishers: int, even: bool, last: int) -> None:
        self._index = memory.index
        self._last = last
        self._publishers = range(publishers)
        self._even = even
        self._rings = {
            (row, generation): [
                memory.index[ring_at(row, generation) + 8 * place] for place in range(PLACES)
            ]
            for row in range(RING_ROWS)
            for generation in range(GENERATIONS)
        }
        self._rows = [memory.index[queue_row(row)] for row in range(RING_ROWS)]

    def first(self, memory: Sequence[int]) -> Hashable:
        return (), frozenset[int]()

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
        choosing, done = _of(ledger)
        return tuple(
            (who, of, members | self._next(memory, of)) for who, of, members in choosing
        ), done

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
        choosing, done = _of(ledger)
        others = tuple(each for each in choosing if each[0] != actor)
        if event == CHOOSES:
            begun = actor, first, self._next(memory, first)
            return tuple(sorted((*others, begun), key=lambda each: each[0])), done
        if event == CHOSE:
            if not any(each[0] == actor and (first, second) in each[2] for each in choosing):
                raise Violation(f"row {_row(first)} with target {second} was not next in turn")
            return others, done
        if event == CHOSE_AMONG:
            if (_row(first), second) not in SELECTED:
                raise Violation(f"row {_row(first)} with target {second} does not take it")
            return ledger
        found = len(self._places(memory, first))
        if found != 1:
            raise Violation(f"{first:#x} is published, and in {found} rings that are there")
        return others, done | {first}

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == BEGIN:
            return (0,)
        return (int(view.killed(argument)),) if view.ended(argument) else ()

    def check(self, view: View) -> None:
        for message in self._messages(view.memory):
            if len(self._places(view.memory, message)) > 1:
                raise Violation(f"{message:#x} is in two rings")

    def finished(self, view: View) -> None:
        eligible = view.memory[self._index[self._copy(view.memory) + at.BALANCE_ELIGIBLE_AT]]
        if self._last >= 0 and eligible != self._last:
            raise Violation(f"eligible are {eligible:b} in the end, not {self._last:b}")
        if not self._even or any(view.killed(each) for each in self._publishers):
            return
        counts = [
            sum(len(self._within(view.memory, row, generation)) for generation in (0, 1))
            for row in range(MEMBERS)
            if eligible >> row & 1
        ]
        if max(counts) - min(counts) > 1:
            raise Violation(f"the rings got {counts}")

    def _copy(self, memory: Sequence[int]) -> int:
        version = memory[self._index[VERSION]]
        return ENTRY + at.BALANCE_COPIES_AT + (version & 1) * at.BALANCE_COPY_BYTES

    def _next(self, memory: Sequence[int], reference: int) -> frozenset[Member]:
        """Those that may have the next turn in this set: all that are eligible, and there."""
        if not _means(memory[self._index[SET_ROW]], reference):
            return frozenset()
        copy = self._copy(memory)
        count = memory[self._index[copy + at.BALANCE_COUNT_AT]] & ((1 << at.BALANCE_COUNT_BITS) - 1)
        eligible = memory[self._index[copy + at.BALANCE_ELIGIBLE_AT]]
        members = []
        for each in range(min(count, MEMBERS)):
            member = copy + at.BALANCE_MEMBERS_AT + each * at.MEMBER_BYTES
            queue, target = (memory[self._index[member + offset]] for offset in (0, 8))
            members.append((queue, target))
        there = [each for each in members if _means(memory[self._rows[_row(each[0])]], each[0])]
        wanted = [each for each in there if eligible >> members.index(each) & 1]
        own = [each for each in there if each[1] == 0]
        return frozenset(wanted or own or there[:1])

    def _within(self, memory: Sequence[int], row: int, generation: int) -> list[int]:
        words = (memory[index] for index in self._rings[row, generation])
        return [word & ((1 << TARGET_SHIFT) - 1) for word in words if word]

    def _places(self, memory: Sequence[int], message: int) -> list[int]:
        """The rings that are there and have it."""
        live = ((row, _generation(memory[index]) & 1) for row, index in enumerate(self._rows))
        return [row for row, last in live if message in self._within(memory, row, last)]

    def _messages(self, memory: Sequence[int]) -> Iterable[int]:
        return {each for ring in self._rings for each in self._within(memory, *ring)}


def _of(ledger: Hashable) -> Ledger:
    assert isinstance(ledger, tuple)
    choosing, done = ledger
    return choosing, done


def _row(queue: int) -> int:
    return queue & at.REFERENCE_INDEX_MASK


def _means(word: int, reference: int) -> bool:
    """Whether the row of a reference is still that one."""
    return bool(word & at.ROW_LIVE) and _generation(word) == reference >> at.REFERENCE_INDEX_BITS


def _generation(word: int) -> int:
    return (word >> at.ROW_GENERATION_SHIFT) & at.ROW_GENERATION_MASK


def ring_at(row: int, generation: int) -> int:
    return RINGS + (row * GENERATIONS + generation) * RING_BYTES


def _memory() -> tuple[Memory, tuple[int, ...]]:
    memory = Memory()
    memory.word("set of the ring", RING + at.RING_BALANCE_AT)
    memory.word("generation", CATALOG + at.CATALOG_GENERATION_AT, BLIND)
    for table in (at.QUEUES, at.BALANCES):
        memory.word(f"rows of {table}", CATALOG + at.CATALOG_HIGH_AT + 8 * table, CONSTANT)
    watched = [memory.word("set", SET_ROW), memory.word("version", VERSION)]
    watched += [memory.word(f"queue[{row}]", queue_row(row)) for row in range(RING_ROWS)]
    memory.word("turn", ENTRY + at.BALANCE_TURN_AT)
    for each in range(2):
        copy = ENTRY + at.BALANCE_COPIES_AT + each * at.BALANCE_COPY_BYTES
        memory.word(f"count[{each}]", copy + at.BALANCE_COUNT_AT)
        watched.append(memory.word(f"eligible[{each}]", copy + at.BALANCE_ELIGIBLE_AT))
        for index in range(MEMBERS):
            member = copy + at.BALANCE_MEMBERS_AT + index * at.MEMBER_BYTES
            memory.word(f"queue of member[{each}, {index}]", member + at.MEMBER_QUEUE_AT)
            memory.word(f"target of member[{each}, {index}]", member + at.MEMBER_TARGET_AT)
        memory.word(f"selector[{each}]", copy + at.BALANCE_SELECTORS_AT)
    for row in range(RING_ROWS):
        for generation in range(GENERATIONS):
            for place in range(PLACES):
                name = f"ring[{row}, {generation}, {place}]"
                memory.word(name, ring_at(row, generation) + 8 * place)
    return memory, tuple(watched)


def _scenario(
    name: str,
    messages: Sequence[int],
    others: Sequence[tuple[Callable[..., int], tuple[int, ...]]],
    *,
    count: int = MEMBERS,
    eligible: int = 7,
    kills: int = 0,
    even: bool = False,
    last: int = -1,
    store_buffers: bool = False,
) -> Scenario:
    memory, watched = _memory()
    publishers = tuple(
        Role(f"publisher{each + 1}", publishing, (each + 1, last), mortal=True)
        for each, last in enumerate(messages)
    )
    rest = tuple(
        Role(what.__name__, what, arguments, mortal=what is changing) for what, arguments in others
    )
    return Scenario(
        name=name,
        memory=memory,
        setup=starting,
        setup_arguments=(count, eligible),
        roles=publishers + rest,
        rules=EachOnceAtAMember(memory, len(messages), even, last),
        watched=watched,
        kills=kills,
        store_buffers=store_buffers,
    )


def spread(name: str, messages: Sequence[int], eligible: int) -> Scenario:
    """Nothing changes: the turns go round."""
    return _scenario(name, messages, (), eligible=eligible, kills=1, even=True)


def eligible_changed(messages: Sequence[int]) -> Scenario:
    """One is left that is eligible."""
    return _scenario("balance-eligible", messages, ((narrowing, (2,)),), kills=1, last=2)


def members_changed(
    name: str, messages: Sequence[int], eligible: int, *, store_buffers: bool = False
) -> Scenario:
    """The broker changes everything, may die, and has a successor."""
    broker = len(messages)
    return _scenario(
        name,
        messages,
        ((changing, (eligible,)), (succeeding, (broker,))),
        count=2,
        eligible=3,
        kills=2,
        store_buffers=store_buffers,
    )


def member_deleted(messages: Sequence[int]) -> Scenario:
    """The only eligible member is deleted, and its row is used anew."""
    others = ((deleting, (1,)),)
    return _scenario("balance-deleted", messages, others, count=2, eligible=2, kills=1)


def set_replaced(messages: Sequence[int]) -> Scenario:
    """Another queue's set gets the row."""
    return _scenario("balance-replaced", messages, ((replacing, ()),), count=2, eligible=3, kills=1)


def selectors_changed() -> Scenario:
    """What is found out by the selectors of one version counts for its members only."""
    memory, watched = _memory()
    return Scenario(
        name="balance-selectors",
        memory=memory,
        setup=selecting_starts,
        setup_arguments=(2, 20),
        roles=(
            Role("publisher", publishing_to_a_selector, (20,), mortal=True),
            Role("broker", selecting, (3, 30, 1, 10), mortal=True),
        ),
        rules=EachOnceAtAMember(memory, 1, even=False, last=-1),
        watched=watched,
        kills=1,
    )
