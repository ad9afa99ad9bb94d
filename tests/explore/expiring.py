"""Messages that expire, without a ring: who publishes, gives back and sets aside, and who searches.

What is to hold whenever nobody searches: the hint is not after any message that is noted, and the
flag is there if one is set aside.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shmbroker.core.atomics import compare_exchange, load_acquire, store
from shmbroker.core.expiry import aside_note, expiry_begin, expiry_note, expiry_repair
from shmbroker.core.layout import RING_ASIDE_AT, RING_NEXT_EXPIRY_AT
from tests.explore.memory import Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

RING: Final = 0x1000
MESSAGES: Final = 0x10000
COUNT: Final = 2
EARLY: Final = 10
NOW: Final = 100
AGAIN: Final = 200
LATE: Final = 1000
EXPIRIES: Final = (EARLY, LATE)

NOT_PUBLISHED: Final = 0
READY: Final = 1
HELD: Final = 2
ASIDE: Final = 3
GONE: Final = 4

IS_THERE_ROOM: Final = 1
IS_DEAD: Final = 2
NOTED: Final = 1
SEARCHED: Final = 2
REPAIRED: Final = 3


@program
def one_is_held(early: int, late: int) -> int:
    store(MESSAGES, early)
    store(MESSAGES + 8, late)
    return 0


@program
def noting(which: int, former: int, expiry: int) -> int:
    """Publish a message that expires then, or give it back."""
    compare_exchange(MESSAGES + 8 * which, former, READY)
    expiry_note(RING, expiry)
    tell(NOTED, which)
    return 0


@program
def setting_aside(which: int) -> int:
    """What dead_aside does."""
    compare_exchange(MESSAGES + 8 * which, HELD, ASIDE)
    aside_note(RING)
    expiry_note(RING, AGAIN)
    tell(NOTED, which)
    return 0


@program
def searching(now: int) -> int:
    """What queue_expire does."""
    if expiry_begin(RING, now) == 0:
        return 0
    following = 0
    for which in range(COUNT):
        state = load_acquire(MESSAGES + 8 * which)
        if state == READY and which == 1:
            following = LATE if following == 0 else min(following, LATE)
        elif state in (READY, ASIDE):
            if ask(IS_THERE_ROOM) == 1:
                compare_exchange(MESSAGES + 8 * which, state, GONE)
            else:
                compare_exchange(MESSAGES + 8 * which, READY, ASIDE)
                aside_note(RING)
                following = AGAIN
    if following:
        expiry_note(RING, following)
    tell(SEARCHED)
    return 0


@program
def repairing(dead: int) -> int:
    if ask(IS_DEAD, dead):
        expiry_repair(RING, 1)
        tell(REPAIRED, dead)
    return 0


@dataclass(frozen=True, slots=True)
class Known:
    """Who searches, and which messages are noted."""

    searching: frozenset[int] = frozenset()
    noted: frozenset[int] = frozenset()


class NothingIsForgotten(Rules):
    """With store buffers, what was noted is not yet to be seen: it is looked at in the end."""

    def __init__(self, store_buffers: bool) -> None:
        self._store_buffers = store_buffers

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
        return replace(ledger, searching=ledger.searching | {actor}) if new == 0 else ledger

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
        if event == NOTED:
            return replace(ledger, noted=ledger.noted | {first})
        return replace(ledger, searching=ledger.searching - {actor, first - 1})

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == IS_THERE_ROOM:
            return (0, 1)
        if view.killed(argument - 1):
            return (1,)
        return (0,) if view.ended(argument - 1) else ()

    def check(self, view: View) -> None:
        assert isinstance(view.ledger, Known)
        if not view.ledger.searching and not self._store_buffers:
            self._look(view, view.ledger.noted)

    def finished(self, view: View) -> None:
        self._look(view, frozenset(range(COUNT)))

    def _look(self, view: View, noted: frozenset[int]) -> None:
        hint, flag, *messages = view.memory
        for which in noted:
            if messages[which] not in (READY, ASIDE):
                continue
            latest = AGAIN if messages[which] == ASIDE else EXPIRIES[which]
            if not 0 < hint <= latest:
                raise Violation(f"message {which} is there, and nobody looks before {hint}")
            if messages[which] == ASIDE and not flag:
                raise Violation(f"message {which} is set aside, and no flag says so")


def expiry_scenario(name: str, store_buffers: bool = False, asides: bool = False) -> Scenario:
    memory = Memory()
    hint = memory.word("hint", RING + RING_NEXT_EXPIRY_AT)
    memory.word("aside", RING + RING_ASIDE_AT)
    for each in range(COUNT):
        memory.word(f"message[{each}]", MESSAGES + 8 * each)
    early = (
        Role("aside", setting_aside, (0,), mortal=True)
        if asides
        else Role("returner", noting, (0, HELD, EARLY), mortal=True)
    )
    roles = (
        early,
        Role("publisher", noting, (1, NOT_PUBLISHED, LATE), mortal=True),
        Role("search1", searching, (2 * LATE,), mortal=True),
        Role("search2", searching, (2 * LATE,)),
        *(Role(f"repairer{dead}", repairing, (dead,)) for dead in (1, 2, 3)),
    )
    return Scenario(
        name=name,
        memory=memory,
        setup=one_is_held,
        setup_arguments=(HELD, NOT_PUBLISHED),
        roles=roles,
        rules=NothingIsForgotten(store_buffers),
        watched=(hint,),
        kills=1,
        answers_max=2,
        store_buffers=store_buffers,
    )
