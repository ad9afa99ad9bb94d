"""What must hold of a ring in every state, whatever has died (DESIGN.md, section 5).

The truth is in the words.  A slot's word may change only along the edges of the protocol, and only
by whom an edge belongs to; the ledger follows the edges, so it knows what was published at which
position and what was acknowledged.  `tail` and `take` are hints; `head` is a truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from shmbroker.core import layout as at
from shmbroker.core.codes import ARENA_FULL, FULL, OK, REVOKED
from tests.explore import processes
from tests.explore.answers import Answers
from tests.explore.cast import COMMITTER, EPILOGUE_OWNER, NUMBERED, Cast
from tests.explore.ledger import Ledger
from tests.explore.operation import Violation
from tests.explore.processes import PRODUCER_SHIFT
from tests.explore.ring import RECORD, BlockWord, Geometry, RingMemory, SlotWord, position_of
from tests.explore.scenario import Rules, View


class RingRules(Rules):
    """The invariants of one ring."""

    def __init__(self, geometry: Geometry, memory: RingMemory, cast: Cast) -> None:
        self._geometry = geometry
        self._memory = memory
        self._cast = cast
        self._answers = Answers(geometry, memory, cast)

    def first(self, memory: Sequence[int]) -> Ledger:
        return Ledger()

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
        if index in self._memory.leases:
            self._check_lease(actor, self._memory.leases.index(index), old, memory)
            return known
        slot = self._memory.slots.index(index)
        was, now = SlotWord.of(old), SlotWord.of(new)
        edge = was.state, now.state
        head = position_of(memory[self._memory.head])
        if edge in ((at.FREE, at.READY), (at.DONE, at.READY)):
            return self._published(known, actor, slot, was, now, memory)
        position = self._memory.position_in(memory, slot, was.lap)
        number = position - self._geometry.base
        same = was.chunk == now.chunk and was.lap == now.lap
        if edge == (at.DONE, at.FREE):
            if now.lap != self._geometry.lap(position + self._geometry.slots) or position >= head:
                raise Violation(f"{was} became {now} while head is {head}")
            return known
        if not same:
            raise Violation(f"{was} became {now}: another message")
        if edge == (at.READY, at.LEASED):
            if now.owner != self._cast.owner(actor) or now.deliveries != was.deliveries:
                raise Violation(f"{was} became {now} by the hand of {self._cast.owner(actor)}")
            self._check_barrier(memory, actor, position)
            return known
        if edge == (at.READY, at.DONE) and self._cast.drops:
            return known.finishing(number)
        if edge == (at.LEASED, at.DONE):
            settled = memory[self._memory.transaction] == at.TRANSACTION_COMMITTED
            if was.owner != self._cast.owner(actor) and not settled:
                raise Violation(f"{was} was acknowledged by {self._cast.owner(actor)}")
            return known.finishing(number)
        if edge == (at.LEASED, at.READY):
            if not self._is_unclaimed(known, actor, number, was, now):
                self._check_revocation(before, actor, was, now)
            self._check_pledge(memory, position)
            return known.letting_go(number)
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
        body = self._memory.body(memory, now.chunk)
        producer, number = divmod(body, 1 << PRODUCER_SHIFT)
        if self._memory.is_carried(memory, now.chunk):  # a copy of what is in the carrier's hand
            return ledger._replace(published=(*ledger.published, body))
        if self._cast.producer(self._cast.owner(actor)) != producer:
            raise Violation(f"{self._cast.owner(actor)} published the message of {producer}")
        wanted = ledger.last_of(producer) + 1
        if number != wanted:
            raise Violation(f"{producer} published its message {number}, not {wanted}")
        return ledger.publishing(body, producer, number)

    def _check_lease(self, actor: int, slot: int, old: int, memory: Sequence[int]) -> None:
        """Nobody overwrites what the present holder of a message has written.

        Except for a repair, by the word that the deadline is over, where there was one.
        """
        word = SlotWord.of(memory[self._memory.slots[slot]])
        tag = (word.deliveries << at.LEASE_DELIVERIES_SHIFT) | word.owner
        tag |= (word.lap & at.LEASE_LAP_MASK) << at.LEASE_LAP_SHIFT
        over = at.LEASE_OVER << at.LEASE_DEADLINE_SHIFT | tag
        if memory[self._memory.leases[slot]] == over and old >> at.LEASE_DEADLINE_SHIFT:
            return
        held = word.state == at.LEASED and old & at.LEASE_TAG_MASK == tag
        if held and word.owner != self._cast.owner(actor):
            raise Violation(f"{self._cast.owner(actor)} overwrote the lease of {word}")

    def _check_barrier(self, memory: Sequence[int], actor: int, position: int) -> None:
        barrier = self._geometry.barrier
        if barrier and actor < len(self._cast.owners):
            visible = position_of(memory[self._memory.gates[barrier - 1]])
            if position >= visible:
                raise Violation(f"{position} was taken, and the journal stands at {visible}")

    def _check_seen(self, memory: Sequence[int], actor: int, position: int) -> None:
        """Cursors see what the barrier has passed, but for the one that holds it."""
        barrier = self._geometry.barrier
        if not barrier:
            return
        gate = memory[self._memory.gates[barrier - 1]]
        holder = (gate >> at.GATE_OWNER_SHIFT) & at.OWNER_MASK
        if holder != self._cast.owner(actor) and position >= position_of(gate):
            raise Violation(f"a cursor saw {position}, and the journal stands at {gate}")

    def _check_pledge(self, memory: Sequence[int], position: int) -> None:
        if memory[self._memory.transaction] != at.TRANSACTION_COMMITTED:
            return
        first = RECORD + at.TRANSACTION_OPERATIONS_AT
        queue = memory[self._memory.index[first + at.OPERATION_QUEUE_AT]]
        where = memory[self._memory.index[first + at.OPERATION_WHERE_AT]]
        if queue & at.OPERATION_ACKS and where == position:
            raise Violation(f"position {position} was given back, and its ack is committed")

    def _is_unclaimed(
        self, ledger: Ledger, actor: int, number: int, was: SlotWord, now: SlotWord
    ) -> bool:
        """Who claimed it may not have it, and has not shown it to anybody."""
        mine = was.owner == self._cast.owner(actor)
        same = was.deliveries == now.deliveries
        return bool(self._cast.groups) and mine and same and number not in dict(ledger.held)

    def _check_group(self, ledger: Ledger, actor: int, number: int) -> None:
        """A group is in one hand, and in order, as far as one thread takes."""
        group, owner = self._cast.group(number), self._cast.owner(actor)
        for each, holder in ledger.held:
            if group and self._cast.group(each) == group and self._cast.owner(holder) != owner:
                raise Violation(f"group {group} is in hand at {holder} and at {actor}")
        if self._cast.has_threads:
            return
        for each in range(number):
            mine = (each, actor) in ledger.held
            if group and self._cast.group(each) == group and not (ledger.is_done(each) or mine):
                raise Violation(f"message {number} of group {group} was taken before {each}")

    def _check_revocation(self, before: View, actor: int, was: SlotWord, now: SlotWord) -> None:
        if now.deliveries != min(was.deliveries + 1, at.DELIVERIES_MASK):
            raise Violation(f"{was} became {now}: deliveries are not counted")
        if self._cast.leases_end or actor >= len(self._cast.owners):
            return
        if was.owner == self._cast.owner(actor) and self._cast.gives_back:
            return
        if not self._cast.is_dead(before, was.owner):
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
            if self._cast.groups:
                number = first - self._geometry.base
                self._check_group(known, actor, number)
                return known.holding(number, actor)
        elif event in (processes.ACKED, processes.GAVE_BACK):
            self._check_answer(known, event, first, second)
        elif event == processes.JOINED:
            return known.moving(actor, first)
        elif event == processes.ADOPTED:
            return self._adopted(known, actor, first, second)
        elif event == processes.SAW:
            self._check_seen(memory, actor, first)
            return self._saw(known, actor, first, second)
        elif event == processes.MISSED:
            return self._missed(known, actor, first)
        elif event == processes.KEPT and first != 1 << PRODUCER_SHIFT | 1:
            raise Violation(f"{first:#x} was kept, and is not what was to be published")
        elif event == processes.LEFT:
            return known.leaving(actor)
        elif event == processes.REFUSED and first not in (FULL, ARENA_FULL):
            raise Violation(f"a kernel answered {first}")
        return known

    def _is_revoked(self, before: View, actor: int, position: int, memory: Sequence[int]) -> bool:
        """A message that a late consumer has just taken may be somebody else's already."""
        word = self._memory.slot_word(memory, position)
        mine = word.state == at.LEASED and word.owner == self._cast.owner(actor)
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
        if self._cast.numbered or geometry.origins:
            self._check_numbers(memory, ledger, hint)
        if geometry.named_gates:
            self._check_gates(memory)

    def _check_gates(self, memory: Sequence[int]) -> None:
        """Whoever looks for a lasting gate finds it."""
        for gate, kind in zip(self._memory.gates, self._memory.gate_kinds, strict=True):
            word = memory[gate]
            lasting = word >> at.GATE_LIFE_SHIFT & at.GATE_LIFE_MASK == at.GATE_LASTING
            if word & at.GATE_ACTIVE and lasting and memory[kind] != at.GATE_REPLICA:
                raise Violation("a gate is lasting, and nobody knows whose it is")

    def _check_live(self, memory: Sequence[int], position: int, body: int) -> None:
        word = self._memory.slot_word(memory, position)
        if word.state == at.FREE or word.lap != self._geometry.lap(position):
            raise Violation(f"position {position} is lost: its slot is {word}")
        if self._memory.body(memory, word.chunk) != body:
            raise Violation(f"the body of position {position} was overwritten")
        block = BlockWord.of(memory[self._memory.blocks[word.chunk // self._geometry.block_bytes]])
        if block.state == at.BLOCK_FREE:
            raise Violation(f"position {position} lies in a free block")
        if block.state == at.BLOCK_OWNED:
            producer = body >> PRODUCER_SHIFT
            is_carried = self._memory.is_carried(memory, word.chunk)
            if self._cast.producer(block.owner) != producer and not is_carried:
                raise Violation(f"position {position} lies in a block that {block.owner} fills")
            return
        note = memory[self._memory.notes[word.chunk // self._geometry.block_bytes]]
        last = (note >> at.NOTE_POSITION_SHIFT) & at.POSITION_MASK
        if (note ^ block.generation) & at.NOTE_GENERATION_MASK == 0 and last < position:
            raise Violation(f"the block of position {position} is sealed up to {last} only")

    def _check_vacant(self, memory: Sequence[int], position: int) -> None:
        word = self._memory.slot_word(memory, position)
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
        return self._answers.to(view, actor, question, argument)

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
        self._check_transaction(memory, ledger)
        may_fail = self._cast.transaction and self._cast.leases_end
        if not self._cast.is_harmed(view) and not may_fail:
            mine = sum(number for who, number in ledger.last if who != EPILOGUE_OWNER)
            if mine != self._cast.expected:
                raise Violation(f"{mine} messages were published, not {self._cast.expected}")

    def _check_transaction(self, memory: Sequence[int], ledger: Ledger) -> None:
        """All of it was published, or nothing, and nothing of it is left."""
        wanted = self._cast.transaction
        if wanted and ledger.last_of(COMMITTER) not in (0, wanted):
            raise Violation(f"{ledger.last_of(COMMITTER)} of {wanted} messages were published")
        if memory[self._memory.transaction] != at.TRANSACTION_NONE:
            raise Violation("a transaction was not settled")
        for identity in self._memory.identities:
            if at.SERIES_IDLE < memory[identity] < 0:
                raise Violation(f"a series of numbers is in the hand of {-memory[identity]}")
