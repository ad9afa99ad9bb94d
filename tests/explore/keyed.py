"""Scenarios of rings that keep the newest of each key: the programs, and what must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from shmbroker.core import layout as at
from shmbroker.core.atomics import load, load_acquire, store, store_release
from shmbroker.core.batch import PLAIN_MARK
from shmbroker.core.carry import carried_mark, carry_on, carry_take
from shmbroker.core.codes import OK
from shmbroker.core.commit import commit_add, commit_begin, commit_decide, commit_number
from shmbroker.core.latest import latest_find, latest_note, latest_repair
from shmbroker.core.publish import publish_chunk_once
from shmbroker.core.run import reserve
from shmbroker.core.take import give_back_once, take_once, unclaim
from shmbroker.core.transaction import loan_placed
from shmbroker.core.word import word_ready
from tests.explore.cast import Cast
from tests.explore.committing import finishing
from tests.explore.invariants import RingRules
from tests.explore.ledger import Ledger
from tests.explore.operation import Violation, ask, tell
from tests.explore.processes import (
    END,
    ENDED,
    FOUND,
    GAVE_BACK,
    IS_THERE_A_VALUE,
    IS_THERE_ROOM,
    PRODUCER_SHIFT,
    REFUSED,
    REPAIR,
    SETTLED,
    forget,
    repair_all,
    surviving,
)
from tests.explore.ring import (
    BODY,
    BODY_BYTES,
    KEYED_BODY_AT,
    MESSAGE,
    PORT,
    QUEUE,
    RECORD,
    RING,
    TRANSACTION,
    Geometry,
    RingMemory,
    SlotWord,
    position_of,
)
from tests.explore.scenario import View
from tests.explore.translation import program

KEY_BITS: Final = 4
RETURNED: Final = 8
"""Beside a key: the message is older than all of this key."""

SHAPE: Final = BODY_BYTES << at.SHAPE_BODY_SHIFT | 1 << at.SHAPE_KEY_SHIFT


@program
def publishing_keys(who: int, first: int, last: int, keys: int) -> int:
    """Publish numbers from first to last, each of the key that four bits of `keys` say."""
    number = first
    while number <= last:
        key = (keys >> KEY_BITS * (number - 1)) & 15
        chunk = reserve(PORT, SHAPE, PLAIN_MARK | key // RETURNED * at.RETURNED)
        address = load(PORT + at.PORT_DATA) + chunk
        store(address + at.CHUNK_HEADER_BYTES, key % RETURNED)
        store(address + KEYED_BODY_AT, (who << PRODUCER_SHIFT) | number)
        position = publish_chunk_once(PORT, chunk)
        while position < 0:
            tell(REFUSED, position)
            what = ask(IS_THERE_ROOM, position)
            if what == END:
                return 0
            if what == REPAIR:
                repair_all()
            position = publish_chunk_once(PORT, chunk)
        latest_note(PORT, position, word_ready(chunk, 0), 1)
        forget()
        number += 1
    return 0


@program
def producing_keys(who: int, last: int, keys: int) -> int:
    load_acquire(RING + at.RING_HEAD_AT)  # a process begins with a step
    return publishing_keys(who, 1, last, keys)


@program
def look_for(key: int) -> int:
    """Say where the newest message of a key is, of which there is one."""
    store(BODY, key)
    position = latest_find(PORT, BODY, 1)
    store(BODY, 0)
    return tell(FOUND, position)


@program
def commit_key(who: int, key: int) -> int:
    """Publish a message of this key in a transaction: its chunk, which is still on loan."""
    load_acquire(RING + at.RING_HEAD_AT)
    commit_begin(RECORD, 0)
    chunk = reserve(PORT, SHAPE, PLAIN_MARK)
    address = load(PORT + at.PORT_DATA) + chunk
    store(address + at.CHUNK_HEADER_BYTES, key)
    store(address + KEYED_BODY_AT, (who << PRODUCER_SHIFT) | 1)
    commit_add(RECORD, QUEUE, chunk, 0)
    store_release(TRANSACTION, at.TRANSACTION_PREPARED)
    commit_number(PORT, RECORD, QUEUE, who, 0)
    commit_decide(0, RECORD, TRANSACTION)
    forget()
    finishing(who)
    return chunk


@program
def committing_key(who: int, key: int) -> int:
    """Publish a message of this key in a transaction, then look for it."""
    chunk = commit_key(who, key)
    look_for(key)
    loan_placed(PORT, chunk)
    forget()
    return 0


@program
def committing_first_key(who: int, last: int, keys: int) -> int:
    """One message in a transaction, and then others, in its memory as soon as it is free."""
    chunk = commit_key(who, keys & 15)
    loan_placed(PORT, chunk)
    forget()
    return publishing_keys(who, 2, last, keys)


@program
def carrying(times: int) -> int:
    """Carry the oldest message to the end, some times."""
    load_acquire(RING + at.RING_HEAD_AT)
    while times > 0:
        times -= 1
        if carry_take(PORT, MESSAGE) == OK:
            chunk = reserve(PORT, load(MESSAGE + at.MESSAGE_SHAPE), carried_mark(MESSAGE))
            if chunk < 0:
                unclaim(PORT, load(MESSAGE + at.MESSAGE_POSITION), load(MESSAGE + at.MESSAGE_WORD))
            else:
                carry_on(PORT, MESSAGE, chunk)
        forget()
    return 0


@program
def finding(key: int, producer: int) -> int:
    """Look for the newest message of a key, of which there is always one from now on."""
    load_acquire(RING + at.RING_HEAD_AT)
    ask(IS_THERE_A_VALUE, producer)
    look_for(key)
    return 0


@program
def repairing() -> int:
    """What a repair does after a death."""
    load_acquire(RING + at.RING_HEAD_AT)
    latest_repair(PORT)
    forget()
    return 0


@program
def returning() -> int:
    """Take one, give it back, and leave."""
    ask(IS_THERE_A_VALUE)
    if take_once(PORT, MESSAGE) == OK:
        position = load(MESSAGE + at.MESSAGE_POSITION)
        tell(GAVE_BACK, position, give_back_once(PORT, MESSAGE))
    forget()
    return 0


@program
def outliving(who: int, extra: int) -> int:
    """surviving; but first, what has to be so when all have ended well, and after a repair."""
    load_acquire(RING + at.RING_HEAD_AT)
    tell(ENDED)
    repair_all()
    latest_repair(PORT)
    tell(SETTLED)
    forget()
    return surviving(who, extra)


class KeyedRules(RingRules):
    """Beside what holds of any ring: of each key the newest stays, and in the end only it."""

    def __init__(
        self,
        geometry: Geometry,
        memory: RingMemory,
        cast: Cast,
        keys: Mapping[int, tuple[int, ...]],
    ) -> None:
        super().__init__(geometry, memory, cast)
        published = {
            (who << PRODUCER_SHIFT) | number: key
            for who, several in keys.items()
            for number, key in enumerate(several, start=1)
        }
        self._keys = {body: key % RETURNED for body, key in published.items()}
        self._returned = {body for body, key in published.items() if key >= RETURNED}

    def _is_newest(self, ledger: Ledger, body: int) -> bool:
        after = ledger.values[ledger.values.index(body) + 1 :]
        if body in self._returned:
            newer = {*after, *(set(ledger.values) - self._returned)}
        else:
            newer = set(after) - self._returned
        return all(self._keys[each] != self._keys[body] for each in newer)

    def wrote(
        self,
        before: View,
        ledger: object,
        actor: int,
        index: int,
        old: int,
        new: int,
        memory: Sequence[int],
    ) -> Ledger:
        known = super().wrote(before, ledger, actor, index, old, new, memory)
        if index not in self._memory.slots:
            return known
        was, now = SlotWord.of(old), SlotWord.of(new)
        body = self._memory.body(memory, now.chunk)
        if body not in self._keys:  # of the epilogue
            return known
        if now.state == at.READY and was.state in (at.FREE, at.DONE) and body not in known.values:
            return known._replace(values=(*known.values, body))
        if (was.state, now.state) == (at.READY, at.DONE):
            copies = [each for each in self._live(memory, known) if each[0] == body]
            if self._is_newest(known, body) and not copies:
                raise Violation(f"the newest of key {self._keys[body]}, {body:#x}, was replaced")
        consumers = (*self._cast.consumers, len(self._cast.owners))
        if (was.state, now.state) == (at.LEASED, at.DONE) and actor in consumers:
            return known._replace(consumed=tuple(sorted({*known.consumed, body})))
        return known

    def _live(self, memory: Sequence[int], ledger: Ledger) -> list[tuple[int, int]]:
        """The messages with a key that are there: body and state."""
        head = position_of(memory[self._memory.head])
        tail = self._geometry.base + len(ledger.published)
        words = [self._memory.slot_word(memory, position) for position in range(head, tail)]
        found = [(self._memory.body(memory, each.chunk), each.state) for each in words]
        return [each for each in found if each[0] in self._keys and each[1] != at.DONE]

    def _in_chains(self, memory: Sequence[int]) -> set[int]:
        """The positions that are found from the chains."""
        words, head = self._memory, position_of(memory[self._memory.head])
        found = set()
        for chain in words.chains:
            position = position_of(memory[chain]) - 1
            while position >= head and position not in found:
                link = memory[words.older[position % self._geometry.slots]]
                lap = (link >> at.LINK_LAP_SHIFT) & at.LINK_LAP_MASK
                if lap != self._geometry.lap(position) & at.LINK_LAP_MASK:
                    break
                found.add(position)
                position = position_of(link) - 1
        return found

    def _check_settled(self, memory: Sequence[int], ledger: Ledger) -> None:
        head = position_of(memory[self._memory.head])
        chained = self._in_chains(memory)
        for position in range(head, self._geometry.base + len(ledger.published)):
            word = self._memory.slot_word(memory, position)
            has_key = self._memory.body(memory, word.chunk) in self._keys
            if word.state == at.READY and has_key and position not in chained:
                raise Violation(f"position {position} is in no chain")
        ready = [
            self._keys[body] for body, state in self._live(memory, ledger) if state == at.READY
        ]
        for key in set(ready):
            if ready.count(key) > 1:
                raise Violation(f"{ready.count(key)} messages of key {key} are left")

    def told(
        self,
        before: View,
        ledger: object,
        actor: int,
        event: int,
        first: int,
        second: int,
        memory: Sequence[int],
    ) -> Ledger:
        known = super().told(before, ledger, actor, event, first, second, memory)
        if event == SETTLED or (event == ENDED and not self._cast.is_harmed(before)):
            self._check_settled(memory, known)
        if event == FOUND and first < 0:
            raise Violation(f"a key that is there was not found: {first}")
        return known

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == IS_THERE_A_VALUE:
            return (0,) if self._is_settled(view) else ()
        return super().answers(view, actor, question, argument)

    def _is_settled(self, view: View) -> bool:
        """The first value of all has its place."""
        return any(view.memory[index] for index in self._memory.chains)

    def finished(self, view: View) -> None:
        super().finished(view)
        ledger = cast(Ledger, view.ledger)
        for body in ledger.values:
            if self._is_newest(ledger, body) and body not in ledger.consumed:
                raise Violation(f"the newest of key {self._keys[body]}, {body:#x}, was never taken")
