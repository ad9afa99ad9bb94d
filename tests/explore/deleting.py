"""A queue that is deleted when it is empty, without a ring: who publishes, singly or in a
transaction, and who deletes.

The catalog's lock is a file lock: the kernel takes it from the dead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from shmbroker.core.atomics import compare_exchange, load_acquire, store, store_release
from shmbroker.core.deletion import deletion_is_marked, deletion_mark, deletion_unmark
from shmbroker.core.layout import RING_DOOMED_AT
from tests.explore.memory import Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

RING: Final = 0x1000
MESSAGES: Final = 0x10000
LIVES: Final = 0x20000
LOCK: Final = 0x30000
SERIES: Final = 0x40000
PUBLISHERS: Final = 2

WHO_HAS_THE_LOCK: Final = 1
CONFIRMED: Final = 1


@program
def declared() -> int:
    store(LIVES, 1)
    return 0


@program
def lock(who: int) -> int:
    while True:
        holder = ask(WHO_HAS_THE_LOCK)
        if compare_exchange(LOCK, holder, who) == holder:
            return 0


@program
def outcome(who: int) -> int:
    """1 if the queue is still there, as auto_delete_outcome says it."""
    lives = 1
    if deletion_is_marked(RING):
        lock(who)
        lives = load_acquire(LIVES)
        if lives:
            deletion_unmark(RING)
        store_release(LOCK, 0)
    return lives


@program
def confirming(who: int) -> int:
    """Publish, as queue_published does."""
    compare_exchange(MESSAGES + 8 * (who - 1), 0, 1)
    if outcome(who):
        tell(CONFIRMED, who)
    return 0


@program
def committing(who: int) -> int:
    """Commit, as ipc/commit/record.c does: the message is placed after the transaction is decided,
    and then the series is let go of."""
    compare_exchange(SERIES, 0, 1)
    if outcome(who):
        tell(CONFIRMED, who)
        compare_exchange(MESSAGES, 0, 1)
    compare_exchange(SERIES, 1, 0)
    return 0


@program
def deleting(who: int) -> int:
    """Delete the queue if it is empty, as ipc/repair/auto_delete.c does."""
    lock(who)
    if load_acquire(LIVES):
        deletion_mark(RING)
        is_held = load_acquire(SERIES)
        if is_held == 0 and load_acquire(MESSAGES) == 0 and load_acquire(MESSAGES + 8) == 0:
            store_release(LIVES, 0)
        else:
            deletion_unmark(RING)
    store_release(LOCK, 0)
    return 0


class NothingConfirmedIsDeleted(Rules):
    def first(self, memory: Sequence[int]) -> Hashable:
        return False

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
        return True

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        holder = view.memory[0]
        return (holder,) if holder == 0 or view.killed(holder - 1) else ()

    def check(self, view: View) -> None:
        if view.ledger and not view.memory[1]:
            raise Violation("a message was confirmed, and its queue is deleted")


def deletion_scenario(store_buffers: bool, *, commits: bool = False) -> Scenario:
    name = "deletion-committed" if commits else "deletion"
    memory = Memory()
    memory.word("lock", LOCK)
    memory.word("lives", LIVES)
    memory.word("mark", RING + RING_DOOMED_AT)
    for each in range(PUBLISHERS):
        memory.word(f"message[{each}]", MESSAGES + 8 * each)
    memory.word("series", SERIES)
    first = (
        Role("committer", committing, (1,), mortal=True)
        if commits
        else Role("publisher1", confirming, (1,), mortal=True)
    )
    return Scenario(
        name=f"{name}-buffered" if store_buffers else name,
        memory=memory,
        setup=declared,
        setup_arguments=(),
        roles=(
            first,
            Role("publisher2", confirming, (2,)),
            Role("deleter1", deleting, (3,), mortal=True),
            Role("deleter2", deleting, (4,)),
        ),
        rules=NothingConfirmedIsDeleted(),
        kills=2,
        store_buffers=store_buffers,
    )
