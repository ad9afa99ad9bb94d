"""Every structure that programs share, and the private ones that kernels work on.

All are little-endian words of 64 bits.  The sign bit of a word is zero unless said otherwise, so
that signed arithmetic is enough.  Names: *_AT is an offset in bytes, *_SHIFT and *_BITS place a
field in a word, *_BYTES is a size.

Slot word: the truth about the message at position p, in slot p % N, lap = p // N

     63    61 60        57 56          45 44                      17 16          0
    +--------+------------+--------------+--------------------------+-------------+
    | state  | deliveries | owner        | chunk (offset / 64)      | lap         |
    +--------+------------+--------------+--------------------------+-------------+

    FREE(lap)    may be published to at this lap; all other fields are 0
    READY        published, in nobody's hand
    LEASED       in the hand of owner
    DONE         acknowledged (or expired, dropped); free for the next lap once head is past it

Slot lease: until when the LEASED word holds, and which one is meant

     63                                   24 23     20 19        12 11             0
    +---------------------------------------+---------+------------+----------------+
    | deadline in ms, 0 none                | deliv.  | lap (low)  | owner          |
    +---------------------------------------+---------+------------+----------------+

Hints and truths of the header: tail is a plain position; take and head carry an epoch

     63            48 47                                                            0
    +----------------+---------------------------------------------------------------+
    | epoch (signed) | position                                                      |
    +----------------+---------------------------------------------------------------+

Gate

     63    62 61    60 59            48 47                                          0
    +--------+--------+----------------+---------------------------------------------+
    | active | kind   | owner          | position: all below may be recycled         |
    +--------+--------+----------------+---------------------------------------------+

Block word, and its note

     63    61 60            49 48                32 31                              0
    +--------+----------------+--------------------+---------------------------------+
    | state  | owner          | queue              | generation                      |
    +--------+----------------+--------------------+---------------------------------+
     63                                                              16 15          0
    +------------------------------------------------------------------+-------------+
    | last position published from the block                           | generation  |
    +------------------------------------------------------------------+-------------+

Chunk: 32 bytes of header, 32 more if EXTENDED, key and properties (padded to 16), body

    0   shape      body:32 | key:16 | properties:16     lengths in bytes
    8   origin     producer:16 | sequence:48            0: not numbered
    16  published  ns since the epoch, 0 unknown
    24  mark       magic:16 | flags:16 | priority:8 | 0:24
    32  expiry     ns since the epoch, 0 never
    40  group      hash of the message group, 0 none
    48  not before ns since the epoch
    56  identity   hash of the message id, 0 none
"""

from __future__ import annotations

from typing import Final

LAYOUT_VERSION: Final = 1

LINE_BYTES: Final = 64
PAIR_BYTES: Final = 128  # what adjacent-line prefetchers move: one hot word on each
PAGE_BYTES: Final = 4096

# --- slot word ------------------------------------------------------------------------------------
LAP_BITS: Final = 17
CHUNK_BITS: Final = 28
OWNER_BITS: Final = 12
DELIVERIES_BITS: Final = 4
STATE_BITS: Final = 3

CHUNK_SHIFT: Final = LAP_BITS
OWNER_SHIFT: Final = CHUNK_SHIFT + CHUNK_BITS
DELIVERIES_SHIFT: Final = OWNER_SHIFT + OWNER_BITS
STATE_SHIFT: Final = DELIVERIES_SHIFT + DELIVERIES_BITS

LAP_MASK: Final = (1 << LAP_BITS) - 1
LAP_HALF: Final = 1 << (LAP_BITS - 1)
CHUNK_MASK: Final = (1 << CHUNK_BITS) - 1
OWNER_MASK: Final = (1 << OWNER_BITS) - 1
DELIVERIES_MASK: Final = (1 << DELIVERIES_BITS) - 1
STATE_MASK: Final = (1 << STATE_BITS) - 1
CHUNK_FIELD: Final = CHUNK_MASK << CHUNK_SHIFT
DELIVERIES_FIELD: Final = DELIVERIES_MASK << DELIVERIES_SHIFT

FREE: Final = 0
READY: Final = 1
LEASED: Final = 2
DONE: Final = 3

CHUNK_UNIT_SHIFT: Final = 6  # chunks start on lines

# --- slot -----------------------------------------------------------------------------------------
SLOT_SHIFT: Final = 6
SLOT_BYTES: Final = 1 << SLOT_SHIFT
SLOT_WORD_AT: Final = 0
SLOT_LEASE_AT: Final = 8
# 16..63: room for what a later layout-compatible feature keeps beside a message

LEASE_DEADLINE_SHIFT: Final = 24
LEASE_DELIVERIES_SHIFT: Final = 20
LEASE_LAP_SHIFT: Final = 12
LEASE_LAP_MASK: Final = 0xFF
LEASE_TAG_MASK: Final = (1 << LEASE_DEADLINE_SHIFT) - 1

# --- positions ------------------------------------------------------------------------------------
POSITION_BITS: Final = 48
POSITION_MASK: Final = (1 << POSITION_BITS) - 1
EPOCH_SHIFT: Final = POSITION_BITS
EPOCH_STEP: Final = 1 << EPOCH_SHIFT

# --- gate -----------------------------------------------------------------------------------------
GATE_ACTIVE_SHIFT: Final = 62
GATE_ACTIVE: Final = 1 << GATE_ACTIVE_SHIFT
GATE_KIND_SHIFT: Final = 60
GATE_KIND_MASK: Final = 3
GATE_OWNER_SHIFT: Final = POSITION_BITS
GATE_BYTES: Final = PAIR_BYTES
GATES: Final = 64

GATE_FLEETING: Final = 0  # dropped when its owner is dead
GATE_LASTING: Final = 1  # stands still and waits for the next owner: journal, replica

# --- ring segment ---------------------------------------------------------------------------------
RING_MAGIC: Final = 0x00474E49524D4853  # "SHMRING\0"
RING_MAGIC_AT: Final = 0
RING_VERSION_AT: Final = 8
RING_BYTES_AT: Final = 16
RING_SLOTS_AT: Final = 24
RING_QUEUE_AT: Final = 32
RING_FLAGS_AT: Final = 40
RING_ARENA_AT: Final = 48  # identity of the arena that the chunks are in
RING_BARRIER_AT: Final = 56  # 1 + index of the gate below which consumers may take; 0 none
RING_IDENTITY_BYTES: Final = 64

RING_TAIL_AT: Final = PAGE_BYTES
RING_TAKE_AT: Final = RING_TAIL_AT + PAIR_BYTES
RING_PAUSED_AT: Final = RING_TAKE_AT + 8  # 1: nothing is taken; beside take, which takers load
RING_HEAD_AT: Final = RING_TAKE_AT + PAIR_BYTES
RING_GATES_HIGH_AT: Final = RING_HEAD_AT + 8  # gates at this index and above were never joined
RING_CONSUMER_BELL_AT: Final = RING_HEAD_AT + PAIR_BYTES
RING_SUBSCRIBER_BELL_AT: Final = RING_CONSUMER_BELL_AT + 8  # publishers look at both at once
RING_PRODUCER_BELL_AT: Final = RING_CONSUMER_BELL_AT + PAIR_BYTES
RING_COUNTERS_AT: Final = RING_PRODUCER_BELL_AT + PAIR_BYTES
RING_SETTINGS_AT: Final = 2 * PAGE_BYTES  # a page for per-queue settings
RING_GATES_AT: Final = 3 * PAGE_BYTES
RING_PRODUCERS_AT: Final = RING_GATES_AT + GATES * GATE_BYTES
PRODUCERS: Final = 64  # entry 0 is never used: it means "not numbered"
PRODUCER_BYTES: Final = LINE_BYTES
PRODUCER_IDENTITY_AT: Final = 0
PRODUCER_SEQUENCE_AT: Final = 8
RING_SLOTS_START: Final = RING_PRODUCERS_AT + PRODUCERS * PRODUCER_BYTES

SLOTS_MIN: Final = 2
SLOTS_MAX: Final = 1 << 24

RING_BROADCAST: Final = 1  # flag: no consumer takes; a message is done when every gate is past it

# counters of rare events, in RING_COUNTERS_AT
COUNTER_GIVEN_BACK_AT: Final = RING_COUNTERS_AT
COUNTER_REVOKED_AT: Final = RING_COUNTERS_AT + 8
COUNTER_EXPIRED_AT: Final = RING_COUNTERS_AT + 16
COUNTER_DROPPED_AT: Final = RING_COUNTERS_AT + 24
COUNTER_DAMAGED_AT: Final = RING_COUNTERS_AT + 32

# --- arena segment --------------------------------------------------------------------------------
ARENA_MAGIC: Final = 0x414E4552414D4853  # "SHMARENA"
ARENA_MAGIC_AT: Final = 0
ARENA_VERSION_AT: Final = 8
ARENA_BYTES_AT: Final = 16
ARENA_BLOCK_BYTES_AT: Final = 24
ARENA_BLOCKS_AT: Final = 32
ARENA_IDENTITY_AT: Final = 40
ARENA_IDENTITY_BYTES: Final = 64
ARENA_COMMITTED_AT: Final = PAGE_BYTES  # blocks that have memory behind them; only grows
ARENA_TABLE_AT: Final = 2 * PAGE_BYTES

BLOCK_ENTRY_SHIFT: Final = 4
BLOCK_ENTRY_BYTES: Final = 1 << BLOCK_ENTRY_SHIFT
BLOCK_WORD_AT: Final = 0
BLOCK_NOTE_AT: Final = 8

BLOCK_FREE: Final = 0
BLOCK_OWNED: Final = 1
BLOCK_SEALED: Final = 2

GENERATION_BITS: Final = 32
GENERATION_MASK: Final = (1 << GENERATION_BITS) - 1
QUEUE_BITS: Final = 17
QUEUE_MASK: Final = (1 << QUEUE_BITS) - 1
BLOCK_QUEUE_SHIFT: Final = GENERATION_BITS
BLOCK_OWNER_SHIFT: Final = BLOCK_QUEUE_SHIFT + QUEUE_BITS
BLOCK_STATE_SHIFT: Final = BLOCK_OWNER_SHIFT + OWNER_BITS
NOTE_GENERATION_MASK: Final = 0xFFFF
NOTE_POSITION_SHIFT: Final = 16

BLOCK_BYTES: Final = 4096
ARENA_BYTES_MAX: Final = 1 << (CHUNK_BITS + CHUNK_UNIT_SHIFT)
RUN_BYTES_MAX: Final = 65536
"""A producer's first run for a queue is one block; they double up to this.  Larger ones are for one
large message."""

# --- chunk ----------------------------------------------------------------------------------------
CHUNK_SHAPE_AT: Final = 0
CHUNK_ORIGIN_AT: Final = 8
CHUNK_PUBLISHED_AT: Final = 16
CHUNK_MARK_AT: Final = 24
CHUNK_HEADER_BYTES: Final = 32
CHUNK_EXPIRY_AT: Final = 32
CHUNK_GROUP_AT: Final = 40
CHUNK_NOT_BEFORE_AT: Final = 48
CHUNK_IDENTITY_AT: Final = 56
CHUNK_EXTENSION_BYTES: Final = 32

SHAPE_BODY_SHIFT: Final = 32
SHAPE_KEY_SHIFT: Final = 16
SHAPE_LENGTH_MASK: Final = 0xFFFF
BODY_BYTES_MAX: Final = (1 << 31) - 1
KEY_BYTES_MAX: Final = 0xFFFF
PROPERTIES_BYTES_MAX: Final = 0xFFFF

ORIGIN_PRODUCER_SHIFT: Final = 48
SEQUENCE_MASK: Final = (1 << 48) - 1

MARK_MAGIC: Final = 0x5B17
MARK_MAGIC_SHIFT: Final = 48
MARK_FLAGS_SHIFT: Final = 32
MARK_FLAGS_MASK: Final = 0xFFFF
CHUNK_EXTENDED: Final = 1

# --- port: what one thread of a program knows of one ring; private memory -------------------------
PORT_HEADER: Final = 0  # address of the ring segment
PORT_SLOTS: Final = 8  # address of slot 0
PORT_SLOT_MASK: Final = 16
PORT_LAP_SHIFT: Final = 24
PORT_OWNER: Final = 32
PORT_QUEUE: Final = 40
PORT_FLAGS: Final = 48
PORT_ARENA: Final = 56  # address of the arena segment
PORT_DATA: Final = 64  # address of block 0
PORT_DATA_BYTES: Final = 72
PORT_BLOCK_SHIFT: Final = 80
PORT_BLOCKS: Final = 88
PORT_HEAD_SEEN: Final = 96  # head was here or further
PORT_RECLAIM_MASK: Final = 104  # an ack at a position with these bits set reclaims
PORT_BARRIER: Final = 112  # address of the gate below which to take, 0 none
PORT_VISIBLE: Final = 120  # the barrier was here or further
PORT_PRODUCER: Final = 128  # our index in the table of producers, 0 not numbered
PORT_SEQUENCE: Final = 136  # the last number we published
PORT_LEASE_DEADLINE: Final = 144  # ms, for the next takes; 0 none
PORT_EXPECT: Final = 152  # address of the chunk that we expect next
PORT_CURSOR: Final = 160  # where the next chunk starts, as an offset in the data
PORT_LIMIT: Final = 168  # where the current run ends
PORT_CURRENT: Final = 176  # index of the current run
PORT_RUN_COUNT: Final = 184
PORT_RUN_BYTES: Final = 192  # how large the next run will be
PORT_SCAN: Final = 200  # block where the next search starts
PORT_PUBLISHED: Final = 208  # ns for the headers of the next messages, 0 unknown
PORT_FILE: Final = 216  # descriptor of the arena's file, for the floor above
PORT_FOUND_TAKE: Final = 224  # what take_find saw in take
PORT_FOUND_WORD: Final = 232  # and in the slot
PORT_COMMITTED_BYTES: Final = 240  # so much of the data had memory behind it, or more
PORT_RUNS: Final = 256

RUNS: Final = 64
RUN_ENTRY_SHIFT: Final = 5
RUN_START_AT: Final = 0  # offset in the data
RUN_BYTES_AT: Final = 8
RUN_LAST_AT: Final = 16  # last position published from it
RUN_LOANS_AT: Final = 24  # chunks reserved and not yet published
PORT_ROOM: Final = PORT_RUNS + (RUNS << RUN_ENTRY_SHIFT)  # a buffer of the program's
PORT_ROOM_BYTES: Final = PORT_ROOM + 8
PORT_MESSAGE: Final = PORT_ROOM + 64  # the message that was last received into it
PORT_BYTES: Final = PORT_MESSAGE + 64

# --- message: what a take tells; private memory ---------------------------------------------------
MESSAGE_POSITION: Final = 0
MESSAGE_WORD: Final = 8  # our LEASED word: what ack and give back compare with
MESSAGE_BODY: Final = 16  # address
MESSAGE_LENGTH: Final = 24
MESSAGE_CHUNK: Final = 32  # address
MESSAGE_SHAPE: Final = 40
MESSAGE_MARK: Final = 48
MESSAGE_OFFSET: Final = 56  # of the body, in the arena's data
MESSAGE_SHIFT: Final = 6
MESSAGE_BYTES: Final = 1 << MESSAGE_SHIFT

# --- cursor: a subscriber's place; private memory -------------------------------------------------
CURSOR_PORT: Final = 0
CURSOR_POSITION: Final = 8
CURSOR_GATE: Final = 16  # index of our gate, -1: lossy
CURSOR_MISSED: Final = 24  # messages that a lossy cursor was too late for
CURSOR_BYTES: Final = 32

assert STATE_SHIFT + STATE_BITS == 64
assert BLOCK_STATE_SHIFT + STATE_BITS == 64
assert LEASE_DELIVERIES_SHIFT + DELIVERIES_BITS == LEASE_DEADLINE_SHIFT
assert OWNER_BITS + 8 == LEASE_DELIVERIES_SHIFT
assert GATE_OWNER_SHIFT + OWNER_BITS == GATE_KIND_SHIFT
assert RING_COUNTERS_AT + PAIR_BYTES <= RING_SETTINGS_AT
assert RING_PRODUCERS_AT == 5 * PAGE_BYTES
assert RING_SLOTS_START == 6 * PAGE_BYTES
assert CHUNK_HEADER_BYTES + CHUNK_EXTENSION_BYTES == LINE_BYTES
assert PORT_COMMITTED_BYTES < PORT_RUNS
assert PORT_BYTES % 64 == 0
