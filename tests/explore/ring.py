"""A small ring and a small arena: where their words are, what they are called, how they read.

The kernels take the geometry from their port, so blocks here are of 64 or 128 bytes, and only
the words that a scenario can touch exist; anything else is outside of the known memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shmbroker.core import layout as at
from shmbroker.core.atomics import store
from shmbroker.core.batch import PLAIN_MARK
from shmbroker.core.port import port_set, port_set_ids, port_set_origins
from shmbroker.core.run import reserve, unreserve
from tests.explore.memory import BLIND, BULK, CONSTANT, PRIVATE_AT, SHARED, Memory
from tests.explore.operation import Violation
from tests.explore.translation import program

RING: Final = 0x100000
ARENA: Final = 0x200000
TRANSACTION: Final = 0x300000
RECORD: Final = 0x300100
IDS: Final = 0x400000
ORIGINS: Final = 0x500000
QUEUE: Final = 5
NAMED: Final = 99
"""The identity of a named producer."""
CHUNK_BYTES: Final = at.LINE_BYTES
BODY_BYTES: Final = 8
KEYED_BODY_AT: Final = at.CHUNK_HEADER_BYTES + 16

PORT: Final = PRIVATE_AT
MESSAGE: Final = PRIVATE_AT + 0x4000
BODY: Final = PRIVATE_AT + 0x5000
ALIVE: Final = PRIVATE_AT + 0x6000
CURSOR: Final = PRIVATE_AT + 0x7000
STEPS: Final = PRIVATE_AT + 0x8000
COPY: Final = PRIVATE_AT + 0x9000
LEASES: Final = PRIVATE_AT + 0xA000
KEPT_COPY: Final = PRIVATE_AT + 0xB000

KEY_FIELD: Final = at.SHAPE_LENGTH_MASK << at.SHAPE_KEY_SHIFT

STATES: Final = ("FREE", "READY", "LEASED", "DONE")
BLOCK_STATES: Final = ("FREE", "OWNED", "SEALED")


@dataclass(frozen=True, slots=True)
class Geometry:
    """How large everything is, and where the positions start."""

    slots: int = 2
    blocks: int = 4
    block_bytes: int = 2 * CHUNK_BYTES
    gates: int = 1
    named_gates: bool = False
    """Each lasting gate is of kind GATE_REPLICA."""
    producers: int = 0
    flags: int = 0
    levels: int = 0
    """Of priority."""
    buckets: int = 0
    """Of message groups."""
    single: bool = False
    """One consumer at a time: all messages are in bucket 0."""
    barrier: int = 0
    """1 + index of the journal's gate, which alone is in the set of the barrier."""
    base: int = 0
    """The first position: head, take and tail at the start."""
    head_epoch: int = 0
    take_epoch: int = 0
    generation: int = 0
    chunk_role: int = BULK
    transactions: bool = False
    finds: bool = False
    """Somebody looks for the newest of a key."""
    keyed: bool = False
    """Of each key the newest stays; messages have keys of a byte."""
    ids: int = 0
    """How many message ids are remembered."""
    noted: int = 0
    """The last number of the named producer at the start."""
    origins: int = 0
    """Entries in the table of origins; the first is known."""
    once: bool = False
    """Some messages are such of which one counts."""

    @property
    def mode(self) -> int:
        buckets = self.buckets << at.MODE_BUCKETS_SHIFT
        return self.levels << at.MODE_LEVELS_SHIFT | buckets | self.single * at.MODE_SINGLE

    @property
    def data(self) -> int:
        table = self.blocks * at.BLOCK_ENTRY_BYTES
        pages = -(-table // at.PAGE_BYTES)
        return ARENA + at.ARENA_TABLE_AT + pages * at.PAGE_BYTES

    def slot(self, position: int) -> int:
        return RING + at.RING_SLOTS_START + (position % self.slots) * at.SLOT_BYTES

    def lap(self, position: int) -> int:
        return (position // self.slots) & at.LAP_MASK

    def block(self, block: int) -> int:
        return ARENA + at.ARENA_TABLE_AT + block * at.BLOCK_ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class SlotWord:
    """The fields of a slot's word."""

    state: int
    deliveries: int
    owner: int
    chunk: int
    lap: int

    @classmethod
    def of(cls, word: int) -> SlotWord:
        return cls(
            (word >> at.STATE_SHIFT) & at.STATE_MASK,
            (word >> at.DELIVERIES_SHIFT) & at.DELIVERIES_MASK,
            (word >> at.OWNER_SHIFT) & at.OWNER_MASK,
            ((word >> at.CHUNK_SHIFT) & at.CHUNK_MASK) << at.CHUNK_UNIT_SHIFT,
            word & at.LAP_MASK,
        )

    def __str__(self) -> str:
        if self.state == at.FREE:
            return f"FREE(lap {self.lap})"
        owner = f" by {self.owner}" if self.owner else ""
        return f"{STATES[self.state]}{owner}(lap {self.lap}, x{self.deliveries}, @{self.chunk})"


@dataclass(frozen=True, slots=True)
class BlockWord:
    """The fields of a block's word."""

    state: int
    owner: int
    queue: int
    generation: int

    @classmethod
    def of(cls, word: int) -> BlockWord:
        return cls(
            (word >> at.BLOCK_STATE_SHIFT) & at.STATE_MASK,
            (word >> at.BLOCK_OWNER_SHIFT) & at.OWNER_MASK,
            (word >> at.BLOCK_QUEUE_SHIFT) & at.QUEUE_MASK,
            word & at.GENERATION_MASK,
        )

    def __str__(self) -> str:
        owner = f" by {self.owner}" if self.owner else ""
        return f"{BLOCK_STATES[self.state]}{owner}(generation {self.generation})"


def position_of(word: int) -> int:
    return word & at.POSITION_MASK


def _verdict(word: int) -> str:
    return f"{(word >> 1) - 1} {'is a duplicate' if word & 1 else 'counts'}" if word else "none"


def _ids_end(geometry: Geometry) -> int:
    n = geometry.ids
    return at.IDS_BUCKETS_AT + n * (at.IDS_BUCKET_BYTES + at.IDS_ENTRY_BYTES)


def _slot(word: int) -> str:
    return str(SlotWord.of(word))


def _block(word: int) -> str:
    return str(BlockWord.of(word))


def _position(word: int) -> str:
    epoch = word >> at.EPOCH_SHIFT
    return f"{position_of(word)}" + (f" (epoch {epoch})" if epoch else "")


def _note(word: int) -> str:
    last = (word >> at.NOTE_POSITION_SHIFT) & at.POSITION_MASK
    return f"last {last} (generation {word & at.NOTE_GENERATION_MASK})"


def bucket_owner_of(word: int) -> int:
    """Whose bucket it is, 0: nobody's."""
    return (word >> at.BUCKET_OWNER_SHIFT) & at.OWNER_MASK


def _bucket(word: int) -> str:
    state = ("FREE", "BOUND", "SETTLED")[word >> at.BUCKET_STATE_SHIFT]
    owner = f" by {bucket_owner_of(word)}" if bucket_owner_of(word) else ""
    return f"{state}{owner} (serial {word & at.BUCKET_SERIAL_MASK})"


def _link(word: int) -> str:
    out = " (out)" if word & at.LINK_OUT else ""
    return f"to {position_of(word) - 1}{out}" if position_of(word) else f"the last{out}"


def _gate(word: int) -> str:
    if not (word >> at.GATE_ACTIVE_SHIFT) & 1:
        return "open"
    owner = (word >> at.GATE_OWNER_SHIFT) & at.OWNER_MASK
    return f"at {position_of(word)} by {owner}"


class RingMemory(Memory):
    """The words of one ring and one arena."""

    def __init__(self, geometry: Geometry) -> None:
        super().__init__()
        self.geometry = geometry
        for each in range(0, at.RING_IDENTITY_BYTES, 8):
            self.word(f"ring identity[{each}]", RING + each, CONSTANT)
        self.tail = self.word("tail", RING + at.RING_TAIL_AT, SHARED, _position)
        self.take = self.word("take", RING + at.RING_TAKE_AT, SHARED, _position)
        self.head = self.word("head", RING + at.RING_HEAD_AT, SHARED, _position)
        self.word(
            "gates high", RING + at.RING_GATES_HIGH_AT, SHARED if geometry.gates else CONSTANT
        )
        self.word("barrier set", RING + at.RING_BARRIER_SET_AT, CONSTANT)
        if geometry.barrier:
            self.word("barrier", RING + at.RING_CONFIRMED_AT, SHARED, _position)
        self.consumer_bell = self.word("consumer bell", RING + at.RING_CONSUMER_BELL_AT)
        self.word("subscriber bell", RING + at.RING_SUBSCRIBER_BELL_AT)
        self.word("mode", RING + at.RING_MODE_AT, CONSTANT)
        self.word("last value", RING + at.SETTING_LAST_VALUE_AT, CONSTANT)
        self.word("carried", RING + at.COUNTER_CARRIED_AT, BLIND)
        self.word("replaced", RING + at.COUNTER_REPLACED_AT, BLIND)
        self.word("replacing", RING + at.RING_REPLACING_AT, SHARED if geometry.finds else BLIND)
        self.levels = [
            self.word(
                f"level[{i}]", RING + at.RING_LEVELS_AT + i * at.PAIR_BYTES, SHARED, _position
            )
            for i in range(geometry.levels)
        ]
        self.buckets = [
            self.word(f"bucket[{i}]", RING + at.RING_BUCKETS_AT + 8 * i, SHARED, _bucket)
            for i in range(geometry.buckets)
        ]
        if geometry.buckets:
            self.word("changes", RING + at.RING_CHANGES_AT)
        self.word("producer bell", RING + at.RING_PRODUCER_BELL_AT)
        for each in range(16):
            self.word(f"counter[{each}]", RING + at.RING_COUNTERS_AT + 8 * each, BLIND)
        self.gates = [
            self.word(f"gate[{i}]", RING + at.RING_GATES_AT + i * at.GATE_BYTES, SHARED, _gate)
            for i in range(geometry.gates)
        ]
        self.gate_kinds = []
        for i in range(geometry.gates):
            gate = RING + at.RING_GATES_AT + i * at.GATE_BYTES
            role = SHARED if geometry.named_gates else BLIND
            self.gate_kinds.append(self.word(f"gate[{i}].kind", gate + at.GATE_KIND_AT, role))
            self.word(f"gate[{i}].since", gate + at.GATE_SINCE_AT, BLIND)
            self.word(f"gate[{i}].name length", gate + at.GATE_NAME_LENGTH_AT, BLIND)
        self.sequences, self.identities = [], []
        for i in range(1, geometry.producers + 1):
            producer = RING + at.RING_PRODUCERS_AT + i * at.PRODUCER_BYTES
            identity = self.word(f"producer[{i}].identity", producer + at.PRODUCER_IDENTITY_AT)
            self.identities.append(identity)
            sequence = self.word(f"producer[{i}].sequence", producer + at.PRODUCER_SEQUENCE_AT)
            self.sequences.append(sequence)
        self.origins, self.origin_owners = [], []
        self.open_numbers: list[int] = []
        """State and number of the second entry."""
        if geometry.origins:
            self.word("open origins", RING + at.RING_ORIGINS_OPEN_AT)
        for i in range(geometry.origins):
            entry = ORIGINS + i * at.ORIGIN_BYTES
            for each in range(0, at.ORIGIN_BYTES, 8):
                word = self.word(f"origin[{i}].{each}", entry + each)
                if each == at.ORIGIN_NUMBER_AT:
                    self.origins.append(word)
                if each == at.ORIGIN_OWNER_AT:
                    self.origin_owners.append(word)
                if i == 1 and each in (at.ORIGIN_STATE_AT, at.ORIGIN_MISSED_AT):
                    self.open_numbers.append(word)
        self.slots, self.leases, self.verdicts = [], [], []
        self.chains: list[int] = []
        self.older: list[int] = []
        for i in range(geometry.slots):
            slot = geometry.slot(i)
            self.slots.append(self.word(f"slot[{i}].word", slot, SHARED, _slot))
            self.leases.append(self.word(f"slot[{i}].lease", slot + at.SLOT_LEASE_AT))
            if geometry.keyed:
                chain = self.word(f"slot[{i}].chain", slot + at.SLOT_CHAIN_AT, SHARED, _link)
                self.chains.append(chain)
                older = self.word(f"slot[{i}].older", slot + at.SLOT_OLDER_AT, SHARED, _link)
                self.older.append(older)
            if geometry.once:
                at_ = slot + at.SLOT_VERDICT_AT
                self.verdicts.append(self.word(f"slot[{i}].verdict", at_, SHARED, _verdict))
        self.ids_count = self.word("ids.count", IDS) if geometry.ids else -1
        if geometry.ids:
            for each in range(at.IDS_BUCKETS_AT, _ids_end(geometry), 8):
                self.word(f"ids[{each}]", IDS + each)
        # the record is written before the word says so, and read after: see committing.py
        role = SHARED if geometry.transactions else CONSTANT
        self.transaction = self.word("transaction", TRANSACTION, role)
        operations = [
            at.TRANSACTION_OPERATIONS_AT + i * at.OPERATION_BYTES + field
            for i in range(3)
            for field in (at.OPERATION_QUEUE_AT, at.OPERATION_WHERE_AT, at.OPERATION_WORD_AT)
        ]
        head = at.TRANSACTION_COUNT_AT, at.TRANSACTION_DURABLE_AT, at.TRANSACTION_SERIAL_AT
        for each in (*head, *operations):
            self.word(f"record[{each}]", RECORD + each, BULK if geometry.transactions else CONSTANT)
        self.word("arena identity", ARENA + at.ARENA_IDENTITY_AT, CONSTANT)
        self.word("serves until", ARENA + at.ARENA_SERVES_UNTIL_AT, CONSTANT)
        self.word("committed", ARENA + at.ARENA_COMMITTED_AT, CONSTANT)
        self.blocks, self.notes = [], []
        for i in range(geometry.blocks):
            block = geometry.block(i)
            self.blocks.append(self.word(f"block[{i}].word", block, SHARED, _block))
            self.notes.append(
                self.word(f"block[{i}].note", block + at.BLOCK_NOTE_AT, SHARED, _note)
            )
        self.data = [
            self.word(f"data[{each}]", geometry.data + each, geometry.chunk_role)
            for each in range(0, geometry.blocks * geometry.block_bytes, 8)
        ]

    def slot_word(self, memory: Sequence[int], position: int) -> SlotWord:
        return SlotWord.of(memory[self.slots[position % self.geometry.slots]])

    def body(self, memory: Sequence[int], chunk: int) -> int:
        """The first word of the body of the message in a chunk."""
        keyed = self.geometry.keyed and self._in(memory, chunk + at.CHUNK_SHAPE_AT) & KEY_FIELD
        if keyed:
            return self._in(memory, chunk + KEYED_BODY_AT)
        flags = self._flags(memory, chunk)
        body = chunk + at.CHUNK_HEADER_BYTES
        if flags & at.CHUNK_ONCE:
            body += at.CHUNK_ONCE_BYTES
        if flags & at.CHUNK_EXTENDED:
            body += at.CHUNK_EXTENSION_BYTES
        return self._in(memory, body)

    def is_carried(self, memory: Sequence[int], chunk: int) -> bool:
        return bool(self._flags(memory, chunk) & at.CHUNK_CARRIED)

    def is_once(self, memory: Sequence[int], chunk: int) -> bool:
        return bool(self._flags(memory, chunk) & at.CHUNK_ONCE)

    def _flags(self, memory: Sequence[int], chunk: int) -> int:
        return self._in(memory, chunk + at.CHUNK_MARK_AT) >> at.MARK_FLAGS_SHIFT

    def _in(self, memory: Sequence[int], offset: int) -> int:
        word = offset >> 3
        if word >= len(self.data):
            raise Violation(f"offset {offset} lies outside of the arena")
        return memory[self.data[word]]

    def identity(self, memory: Sequence[int], chunk: int) -> tuple[int, int, int]:
        """By what a message of which one counts is the same as another."""
        first = chunk + at.CHUNK_HEADER_BYTES
        high, low, origin = (
            memory[self.data[each >> 3]] for each in (first, first + 8, chunk + at.CHUNK_ORIGIN_AT)
        )
        return (high, low, 0) if high | low else (0, 0, origin & at.SEQUENCE_MASK)

    def position_in(self, memory: Sequence[int], slot: int, lap: int) -> int:
        """The position of a lap of a slot that is closest to head."""
        slots = self.geometry.slots
        head = position_of(memory[self.head])
        for position in range(head - 2 * slots, head + 2 * slots):
            if position % slots == slot and self.geometry.lap(position) == lap:
                return position
        raise Violation(f"slot {slot} has lap {lap}, which is nowhere near head")


@program
def ring_set_up(blocks: int, flags: int, barrier: int, mode: int, keyed: int, origins: int) -> int:
    """What formatting leaves; the geometry is too small for ring_format and arena_format."""
    store(RING + at.RING_QUEUE_AT, QUEUE)
    store(RING + at.RING_FLAGS_AT, flags)
    store(RING + at.RING_JOURNAL_GATE_AT, barrier)
    if barrier:
        store(RING + at.RING_BARRIER_SET_AT, 1 << (barrier - 1))
    store(RING + at.RING_MODE_AT, mode)
    store(RING + at.RING_IDS_MADE_AT, 1)
    store(RING + at.RING_ORIGINS_MADE_AT, origins)
    store(RING + at.SETTING_LAST_VALUE_AT, keyed)
    store(ARENA + at.ARENA_COMMITTED_AT, blocks)
    return 0


@program
def port_opening(
    slots: int,
    blocks: int,
    block_bytes: int,
    owner: int,
    scan: int,
    owns: int,
    ids: int,
    origins: int,
) -> int:
    """Open the port of one process; `scan`: the block where its searches start.

    With `owns` it has its first run of blocks before the scenario begins.
    """
    port_set(PORT, RING, ARENA, slots, blocks, block_bytes, owner)
    port_set_ids(PORT, IDS, ids)
    port_set_origins(PORT, ORIGINS, origins)
    store(PORT + at.PORT_SCAN, scan)
    if owns:
        unreserve(PORT, reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, PLAIN_MARK))
    return 0


def first_words(geometry: Geometry) -> dict[int, int]:
    """The words of an empty ring that has been in use for long: counters close to their wrap."""
    poked = {
        RING + at.RING_TAIL_AT: geometry.base,
        RING + at.RING_TAKE_AT: (geometry.take_epoch << at.EPOCH_SHIFT) | geometry.base,
        RING + at.RING_HEAD_AT: (geometry.head_epoch << at.EPOCH_SHIFT) | geometry.base,
    }
    if geometry.barrier:
        poked[RING + at.RING_CONFIRMED_AT] = (0x7FFF << at.EPOCH_SHIFT) | geometry.base
    for level in range(geometry.levels):
        poked[RING + at.RING_LEVELS_AT + level * at.PAIR_BYTES] = poked[RING + at.RING_TAKE_AT]
    for position in range(geometry.base, geometry.base + geometry.slots):
        poked[geometry.slot(position)] = geometry.lap(position)
    for block in range(geometry.blocks):
        poked[geometry.block(block)] = geometry.generation
    if geometry.origins:
        poked[ORIGINS + at.ORIGIN_STATE_AT] = at.ORIGIN_KNOWN
        poked[ORIGINS + at.ORIGIN_HIGH_AT] = poked[ORIGINS + at.ORIGIN_LOW_AT] = NAMED
    if geometry.once and not geometry.ids:
        for producer in range(1, geometry.producers + 1):
            entry = RING + at.RING_PRODUCERS_AT + producer * at.PRODUCER_BYTES
            poked[entry + at.PRODUCER_IDENTITY_AT] = NAMED
            poked[entry + at.PRODUCER_SEQUENCE_AT] = geometry.noted
    return poked
