"""What must hold of a ring in every state, whatever has died (DESIGN.md, section 5).

The truth is in the words.  A slot's word may change only along the edges of the protocol, and only
by whom an edge belongs to; the ledger follows the edges, so it knows what was published at which
position and what was acknowledged.  `tail` and `take` are hints; `head` is a truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from shmbroker.core import layout as at
from shmbroker.core.codes import ARENA_FULL, EMPTY, FULL, OK, REVOKED
from tests.explore import processes
from tests.explore.ledger import Ledger
from tests.explore.operation import Violation
from tests.explore.processes import END, GO_ON, PRODUCER_SHIFT, TIDY
from tests.explore.ring import BlockWord, Geometry, RingMemory, SlotWord, position_of
from tests.explore.scenario import Rules, View

EPILOGUE_OWNER: Final = 60
NUMBERED: Final = 1
"""The one producer whose messages are numbered, where any are."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays what: indices of the scenario's roles, and what they are allowed."""

    owners: tuple[int, ...]
    producers: tuple[int, ...] = ()
    consumers: tuple[int, ...] = ()
    cursors: tuple[int, ...] = ()
    leases_end: bool = False
    """A lease may run out, so a live consumer may be revoked."""
    gives_back: bool = False
    drops: bool = False
    """Messages that nobody has may be dropped, or done with once every cursor has seen them."""
    lossy: bool = False
    numbered: bool = False
    expected: int = 0
    """Messages that are published if nobody dies."""
    writers: dict[int, int] = field(default_factory=dict)
    """Which owner publishes the bodies of which producer, where they differ."""


class RingRules(Rules):
    """The invariants of one ring, and the answers to its programs' questions."""

    def __init__(self, geometry: Geometry, memory: RingMemory, cast: Cast) -> None:
        self._geometry = geometry
        self._memory = memory
        self._cast = cast
        self._body_at = at.CHUNK_HEADER_BYTES

    def first(self, memory: Sequence[int]) -> Ledger:
        return Ledger()

    # --- what the words say -----------------------------------------------------------------------

    def _slot(self, memory: Sequence[int], position: int) -> SlotWord:
        return SlotWord.of(memory[self._memory.slots[position % self._geometry.slots]])

    def _body(self, memory: Sequence[int], chunk: int) -> int:
        data = self._memory.data
        word = (chunk + self._body_at) >> 3
        if word >= len(data):
            raise Violation(f"chunk {chunk} lies outside of the arena")
        return memory[data[word]]

    def _position(self, memory: Sequence[int], slot: int, lap: int) -> int:
        """The position of a lap of a slot that is closest to head."""
        slots = self._geometry.slots
        head = position_of(memory[self._memory.head])
        for position in range(head - 2 * slots, head + 2 * slots):
            if position % slots == slot and self._geometry.lap(position) == lap:
                return position
        raise Violation(f"slot {slot} has lap {lap}, which is nowhere near head")

    def _owner(self, actor: int) -> int:
        owners = self._cast.owners
        return owners[actor] if actor < len(owners) else EPILOGUE_OWNER

    def _is_dead(self, view: View, owner: int) -> bool:
        """Killed, or whoever is asked by the epilogue."""
        mine = [actor for actor, each in enumerate(self._cast.owners) if each == owner]
        return bool(mine) and all(view.killed(actor) for actor in mine)

    # --- steps ------------------------------------------------------------------------------------

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
        """Follow one edge of a slot's word, or object to it."""
        known = cast(Ledger, ledger)
        if index == self._memory.head:
            return known.forgetting(position_of(new) - self._geometry.base)
        slot = self._memory.slots.index(index)
        was, now = SlotWord.of(old), SlotWord.of(new)
        edge = was.state, now.state
        head = position_of(memory[self._memory.head])
        if edge in ((at.FREE, at.READY), (at.DONE, at.READY)):
            return self._published(known, actor, slot, was, now, memory)
        position = self._position(memory, slot, was.lap)
        number = position - self._geometry.base
        same = was.chunk == now.chunk and was.lap == now.lap
        if edge == (at.DONE, at.FREE):
            if now.lap != self._geometry.lap(position + self._geometry.slots) or position >= head:
                raise Violation(f"{was} became {now} while head is {head}")
            return known
        if not same:
            raise Violation(f"{was} became {now}: another message")
        if edge == (at.READY, at.LEASED):
            if now.owner != self._owner(actor) or now.deliveries != was.deliveries:
                raise Violation(f"{was} became {now} by the hand of {self._owner(actor)}")
            self._check_barrier(memory, actor, position)
            return known
        if edge == (at.READY, at.DONE) and self._cast.drops:
            return known.finishing(number)
        if edge == (at.LEASED, at.DONE):
            if was.owner != self._owner(actor):
                raise Violation(f"{was} was acknowledged by {self._owner(actor)}")
            return known.finishing(number)
        if edge == (at.LEASED, at.READY):
            self._check_revocation(before, actor, was, now)
            return known
        raise Violation(f"{was} became {now}: there is no such edge")

    def _published(
        self,
        ledger: Ledger,
        actor: int,
        slot: int,
        was: SlotWord,
        now: SlotWord,
        memory: Sequence[int],
    ) -> Ledger:
        geometry = self._geometry
        position = geometry.base + len(ledger.published)
        head = position_of(memory[self._memory.head])
        if position % geometry.slots != slot or geometry.lap(position) != now.lap:
            raise Violation(f"{now} in slot {slot} is not the next position, {position}")
        if position >= head + geometry.slots:
            raise Violation(f"position {position} was published a lap ahead of head, {head}")
        laps = (now.lap - was.lap) & at.LAP_MASK
        if laps != (1 if was.state == at.DONE else 0):
            raise Violation(f"{was} became {now}")
        body = self._body(memory, now.chunk)
        producer, number = divmod(body, 1 << PRODUCER_SHIFT)
        if self._cast.writers.get(self._owner(actor), self._owner(actor)) != producer:
            raise Violation(f"{self._owner(actor)} published the message of {producer}")
        wanted = ledger.last_of(producer) + 1
        if number != wanted:
            raise Violation(f"{producer} published its message {number}, not {wanted}")
        return ledger.publishing(body, producer, number)

    def _check_barrier(self, memory: Sequence[int], actor: int, position: int) -> None:
        barrier = self._geometry.barrier
        if barrier and actor < len(self._cast.owners):
            visible = position_of(memory[self._memory.gates[barrier - 1]])
            if position >= visible:
                raise Violation(f"{position} was taken, and the journal stands at {visible}")

    def _check_revocation(self, before: View, actor: int, was: SlotWord, now: SlotWord) -> None:
        if now.deliveries != min(was.deliveries + 1, at.DELIVERIES_MASK):
            raise Violation(f"{was} became {now}: deliveries are not counted")
        if self._cast.leases_end or actor >= len(self._cast.owners):
            return
        if was.owner == self._owner(actor) and self._cast.gives_back:
            return
        if not self._is_dead(before, was.owner):
            raise Violation(f"{was} was taken away from a live consumer that is not late")

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
        known = cast(Ledger, ledger)
        if event == processes.TAKEN:
            if not self._is_revoked(before, actor, first, memory):
                self._check_content(known, first, second)
        elif event in (processes.ACKED, processes.GAVE_BACK):
            self._check_answer(known, event, first, second)
        elif event == processes.JOINED:
            return known.moving(actor, first)
        elif event == processes.ADOPTED:
            return self._adopted(known, actor, first, second)
        elif event == processes.SAW:
            return self._saw(known, actor, first, second)
        elif event == processes.MISSED:
            return self._missed(known, actor, first)
        elif event == processes.LEFT:
            return known.leaving(actor)
        elif event == processes.REFUSED and first not in (FULL, ARENA_FULL):
            raise Violation(f"a kernel answered {first}")
        return known

    def _is_revoked(self, before: View, actor: int, position: int, memory: Sequence[int]) -> bool:
        """A message that a late consumer has just taken may be somebody else's already."""
        word = self._slot(memory, position)
        mine = word.state == at.LEASED and word.owner == self._owner(actor)
        return self._cast.leases_end and not mine

    def _check_content(self, ledger: Ledger, position: int, body: int) -> None:
        number = position - self._geometry.base
        if not 0 <= number < len(ledger.published):
            raise Violation(f"position {position} was delivered and never published")
        if ledger.published[number] != body:
            raise Violation(f"position {position} was delivered with the body {body:#x}")

    def _check_answer(self, ledger: Ledger, event: int, position: int, code: int) -> None:
        number = position - self._geometry.base
        if event == processes.ACKED and code == OK and not ledger.is_done(number):
            raise Violation(f"position {position} was acknowledged, and is not done")
        if code != OK and not self._cast.leases_end:
            raise Violation(f"position {position} was revoked from a live consumer: {code}")
        if code not in (OK, REVOKED, 1):
            raise Violation(f"a kernel answered {code}")

    def _adopted(self, ledger: Ledger, actor: int, position: int, former: int) -> Ledger:
        """An heir goes on where the former cursor was, or before; or that one had not joined."""
        following = ledger.following(former)
        if following >= 0 and not 0 <= position <= following:
            raise Violation(f"the gate of a cursor at {following} was adopted at {position}")
        return ledger.moving(actor, position) if position >= 0 else ledger

    def _saw(self, ledger: Ledger, actor: int, position: int, body: int) -> Ledger:
        self._check_content(ledger, position, body)
        if position != ledger.following(actor):
            raise Violation(f"a cursor saw {position}, not {ledger.following(actor)}")
        return ledger.moving(actor, position + 1)

    def _missed(self, ledger: Ledger, actor: int, position: int) -> Ledger:
        if not self._cast.lossy:
            raise Violation("a gating cursor missed a message")
        if position < ledger.following(actor):
            raise Violation("a cursor went back")
        return ledger.moving(actor, position)

    # --- states -----------------------------------------------------------------------------------

    def check(self, view: View) -> None:
        memory, ledger = view.memory, cast(Ledger, view.ledger)
        words, geometry = self._memory, self._geometry
        head = position_of(memory[words.head])
        take = position_of(memory[words.take])
        hint = position_of(memory[words.tail])
        tail = geometry.base + len(ledger.published)
        if not head <= take <= tail:
            raise Violation(f"head {head}, take {take}, tail {tail} are out of order")
        if not head <= hint <= tail:
            raise Violation(f"head {head}, the hint of tail {hint}, tail {tail} are out of order")
        if tail > head + geometry.slots:
            raise Violation(f"tail {tail} is more than a lap ahead of head {head}")
        for number in range(head - geometry.base):
            if not ledger.is_done(number):
                raise Violation(f"head has passed {geometry.base + number}, which is not done")
        for position in range(head, tail):
            self._check_live(memory, position, ledger.published[position - geometry.base])
        for position in range(tail, head + geometry.slots):
            self._check_vacant(memory, position)
        for actor, following in ledger.cursors:
            if head > following and not self._cast.lossy and not view.killed(actor):
                raise Violation(f"head {head} has passed a cursor at {following}")
        if self._cast.numbered:
            self._check_numbers(memory, ledger, hint)

    def _check_live(self, memory: Sequence[int], position: int, body: int) -> None:
        word = self._slot(memory, position)
        if word.state == at.FREE or word.lap != self._geometry.lap(position):
            raise Violation(f"position {position} is lost: its slot is {word}")
        if self._body(memory, word.chunk) != body:
            raise Violation(f"the body of position {position} was overwritten")
        block = BlockWord.of(memory[self._memory.blocks[word.chunk // self._geometry.block_bytes]])
        if block.state == at.BLOCK_FREE:
            raise Violation(f"position {position} lies in a free block")
        if block.state == at.BLOCK_OWNED:
            producer = body >> PRODUCER_SHIFT
            if self._cast.writers.get(block.owner, block.owner) != producer:
                raise Violation(f"position {position} lies in a block that {block.owner} fills")
            return
        note = memory[self._memory.notes[word.chunk // self._geometry.block_bytes]]
        last = (note >> at.NOTE_POSITION_SHIFT) & at.POSITION_MASK
        if (note ^ block.generation) & at.NOTE_GENERATION_MASK == 0 and last < position:
            raise Violation(f"the block of position {position} is sealed up to {last} only")

    def _check_vacant(self, memory: Sequence[int], position: int) -> None:
        word = self._slot(memory, position)
        lap = self._geometry.lap(position)
        if word.state == at.FREE and word.lap == lap:
            return
        if word.state == at.DONE and (lap - word.lap) & at.LAP_MASK == 1:
            return
        raise Violation(f"position {position} cannot be published to: its slot is {word}")

    def _check_numbers(self, memory: Sequence[int], ledger: Ledger, hint: int) -> None:
        sequence = memory[self._memory.sequences[0]]
        beyond = ledger.published[hint - self._geometry.base :]
        last = ledger.last_of(NUMBERED)
        passed = last - sum(each >> PRODUCER_SHIFT == NUMBERED for each in beyond)
        if sequence < passed:
            raise Violation(f"tail has passed number {passed}; noted is {sequence}")
        if sequence > last:
            raise Violation(f"the number {sequence} is noted and was never published")

    # --- questions --------------------------------------------------------------------------------

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == processes.WHO_IS_ALIVE:
            return (self._alive(view, actor),)
        if question == processes.IS_THERE_ROOM:
            return self._room(view, argument)
        if question == processes.IS_THERE_WORK:
            return self._work(view, actor, argument)
        if question == processes.WHAT_TIME:
            return 1, argument
        if question == processes.MAY_I_SLEEP:
            return () if view.memory[self._memory.consumer_bell] else (0,)
        if question == processes.IS_IT_MY_TURN:
            return (0,) if view.ended(argument) else ()
        raise ValueError(f"nobody knows the answer to question {question}")

    def _alive(self, view: View, actor: int) -> int:
        bits = 1 << self._owner(actor)
        if actor < len(self._cast.owners):
            for each, owner in enumerate(self._cast.owners):
                if not view.killed(each):
                    bits |= 1 << owner
        return bits

    def _room(self, view: View, code: int) -> Sequence[int]:
        """Try again if that may help; give up if nobody is left who could make room."""
        memory, ledger = view.memory, cast(Ledger, view.ledger)
        head = position_of(memory[self._memory.head])
        tail = self._geometry.base + len(ledger.published)
        if self._geometry.flags & at.RING_BROADCAST:
            return self._broadcast_room(view)
        waiting = any(not view.ended(each) for each in self._cast.consumers)
        if code == ARENA_FULL:
            return self._memory_room(view, waiting)
        if any(self._is_dead(view, owner) for owner in self._gate_owners(memory)):
            return (TIDY,)
        if tail - head < self._geometry.slots or self._slot(memory, head).state == at.DONE:
            return (GO_ON,)
        return () if waiting else (END,)

    def _broadcast_room(self, view: View) -> Sequence[int]:
        memory = view.memory
        gates = [memory[each] for each in self._memory.gates if memory[each] & at.GATE_ACTIVE]
        if any(self._is_dead(view, owner) for owner in self._gate_owners(memory)):
            return (TIDY,)
        head = position_of(memory[self._memory.head])
        return (GO_ON,) if all(position_of(each) > head for each in gates) else ()

    def _gate_owners(self, memory: Sequence[int]) -> Iterator[int]:
        for index in self._memory.gates:
            if memory[index] & at.GATE_ACTIVE:
                yield (memory[index] >> at.GATE_OWNER_SHIFT) & at.OWNER_MASK

    def _memory_room(self, view: View, waiting: bool) -> Sequence[int]:
        blocks = [BlockWord.of(view.memory[each]) for each in self._memory.blocks]
        if any(each.state == at.BLOCK_OWNED and self._is_dead(view, each.owner) for each in blocks):
            return (TIDY,)
        return (GO_ON,) if waiting else (END,)

    def _work(self, view: View, actor: int, code: int) -> Sequence[int]:
        memory, ledger = view.memory, cast(Ledger, view.ledger)
        if code != EMPTY:
            raise Violation(f"a kernel answered {code}")
        producing = any(not view.ended(each) for each in self._cast.producers)
        tail = self._geometry.base + len(ledger.published)
        if actor in self._cast.cursors:
            if ledger.following(actor) < tail:
                return (GO_ON,)
            return () if producing else (END,)
        if ledger.all_done:
            return () if producing else (END,)
        return self._left(view, range(position_of(memory[self._memory.head]), tail))

    def _left(self, view: View, positions: range) -> Sequence[int]:
        """What a consumer that found nothing may do about the messages that are not done."""
        take = position_of(view.memory[self._memory.take])
        harmed = any(
            view.killed(each) or view.stopped(each) for each in range(len(self._cast.owners))
        )
        retry = repair = held = False
        for position in positions:
            word = self._slot(view.memory, position)
            if word.state == at.READY:
                retry = True
                repair |= position < take and harmed
            elif word.state == at.LEASED:
                repair |= self._is_dead(view, word.owner)
                held |= not self._is_stopped(view, word.owner)
        if not (retry or repair or held):
            return (END,)
        return (GO_ON,) * retry + (TIDY,) * repair

    def _is_stopped(self, view: View, owner: int) -> bool:
        return any(
            view.stopped(actor) for actor, each in enumerate(self._cast.owners) if each == owner
        )

    # --- the end ----------------------------------------------------------------------------------

    def finished(self, view: View) -> None:
        memory, ledger = view.memory, cast(Ledger, view.ledger)
        tail = self._geometry.base + len(ledger.published)
        for number, body in enumerate(ledger.published):
            if not ledger.is_done(number):
                position = self._geometry.base + number
                raise Violation(f"position {position}, body {body:#x}, was published and is lost")
        if position_of(memory[self._memory.head]) != tail:
            raise Violation("everything is done, and head has not come to tail")
        for index in self._memory.blocks:
            block = BlockWord.of(memory[index])
            if block.state == at.BLOCK_SEALED or (
                block.state == at.BLOCK_OWNED and block.owner != EPILOGUE_OWNER
            ):
                raise Violation(f"everything is done, and {block} is not free")
        actors = range(len(self._cast.owners))
        if not any(view.killed(each) or view.stopped(each) for each in actors):
            mine = sum(number for who, number in ledger.last if who != EPILOGUE_OWNER)
            if mine != self._cast.expected:
                raise Violation(f"{mine} messages were published, not {self._cast.expected}")
