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
    READY        published, in nobody's hand; with all bits of owner: set aside, see put_aside.py
    LEASED       in the hand of owner
    DONE         acknowledged (or expired, dropped); free for the next lap once head is past it

Slot lease: until when the LEASED word holds, and which one is meant

     63                                   24 23     20 19        12 11             0
    +---------------------------------------+---------+------------+----------------+
    | deadline in ms, 0 none                | deliv.  | lap (low)  | owner          |
    +---------------------------------------+---------+------------+----------------+

Slot verdict: what of the message at a position, if it is one of those of which one counts (once.py)

     63                          49                                          1   0
    +------------------------------+-------------------------------------------+---+
    | 0                            | 1 + position                              |dup|
    +------------------------------+-------------------------------------------+---+
Slot chain and slot older, of a ring that keeps the newest of each key only (latest.py)

     63    62    61                 48 47                                           0
    +---+------+----------------------+---------------------------------------------+
    | 0 | out  | lap (low), 0 a chain | 1 + position of the next older, 0 none      |
    +---+------+----------------------+---------------------------------------------+

Hints and truths of the header: tail is a plain position; take and head carry an epoch

     63            48 47                                                            0
    +----------------+---------------------------------------------------------------+
    | epoch (signed) | position                                                      |
    +----------------+---------------------------------------------------------------+

Bucket of message groups: who may take from it; the serial moves whenever somebody binds it

     63    62 61    60 59          48 47      40 39                                 0
    +--------+--------+--------------+----------+-----------------------------------+
    | 0      | state  | owner        | rank     | serial                            |
    +--------+--------+--------------+----------+-----------------------------------+

    FREE         nobody's
    BOUND        the owner's, as soon as nobody else has a message of it in hand
    SETTLED      the owner may take

Gate

     63    62 61    60 59            48 47                                          0
    +--------+--------+----------------+---------------------------------------------+
    | active | kind   | owner          | position: all below may be recycled         |
    +--------+--------+----------------+---------------------------------------------+

Block word, and its note; of a sealed one the owner is whose messages are in it, 0 a dead one's

     63    61 60            49 48                32 31                              0
    +--------+----------------+--------------------+---------------------------------+
    | state  | owner          | queue              | generation                      |
    +--------+----------------+--------------------+---------------------------------+
     63                                                              16 15          0
    +------------------------------------------------------------------+-------------+
    | last position published from the block                           | generation  |
    +------------------------------------------------------------------+-------------+

Memory of message ids, behind the slots: a hash chain in a ring of the last N (ids.py)

    0     how many ids were ever noted: the serial number of the last
    128   N words: the last serial of each bucket
          N entries of 32 bytes, serial s in entry s % N
          0   three words, each 42 bits of the id's hash and 21 of the lap of s
          24  the serial before it in the same bucket, 0 none

Origins: of each stream of numbered messages that comes from elsewhere how far it is (origin.py).
Behind the slots and the ids, on a page of their own

    0   state      0: nobody's; bit 0: an origin; bit 1: and each of its numbers comes, in any order
    8   identity   128 bits: high, and low half
    24  number     generation:15 | the highest that was published:48
    32  owner      the participant that publishes them, 0 nobody
    40  used       ns since the epoch, when its owner last had something to do with it
    48  from       its messages have positions from there on; those below are a former origin's
    56  kept       so many ns after it was used, below 0: for ever

and of an open number, one below the highest that was not published (open_number.py)

    0   state      bit 2
    8   of         generation:15 | its origin's entry:48
    16  missed     the number
    24  number     generation:15 | 0, or the number as soon as it is published or given up:48

Chunk: 32 bytes of header, 32 more if EXTENDED, 16 more if ONCE, key and properties (padded to 16),
body

    0   shape      body:32 | key:16 | properties:16     lengths in bytes
    8   origin     producer:16 | sequence:48            0: not numbered; from PRODUCERS on an origin
    16  published  ns since the epoch, 0 unknown
    24  mark       magic:16 | flags:16 | 1 + priority, 0 the default:8 | age:20 | deliveries:4
                   age: of what was carried, see carry.py
                   deliveries: how often it had been delivered before it was placed in its slot
    32  expiry     monotonic ns of this boot, 0 never: steps of the wall clock change nothing
    40  group      hash of the message group, 0 none
    48  not before monotonic ns of this boot, 0 at once
    56  (free)
    and if ONCE, here or at 32: two words of 63 bits each of the hash of the message id, 0 none

Body of a message in a schedule: 32 bytes, then what the body will be

    0   id           of the queue's scheduled messages
    8   time of day  ns since the epoch, at which it is due; 0: `not before` of the chunk says when
    16  (free)

Due word of a schedule: nothing in it is due before; see due.py

     63                                                                        1   0
    +----------------------------------------------------------------------------+----+
    | monotonic ns of this boot, 0 nothing is scheduled                          | c  |
    +----------------------------------------------------------------------------+----+

Row word of the catalog: whether the entry of the same index is there, and which one it is

     63  62   61                          32 31                                     0
    +---+----+------------------------------+----------------------------------------+
    | 0 |live| generation, never 0 if live  | hash of the name, or of who is bound   |
    +---+----+------------------------------+----------------------------------------+

Reference to a row: no longer valid once the row is removed; never 0

     63          54 53                          24 23                                0
    +--------------+------------------------------+-----------------------------------+
    | 0            | generation                   | index                             |
    +--------------+------------------------------+-----------------------------------+

Catalog: what a vhost consists of.  The header and the columns are always committed; an entry is
before its row is made live.

    page 0       identity: magic, version, bytes, arena, boot, name of the vhost
    page 1       generation: counts changes | how many rows of each table were ever used
    page 2...    columns of row words: queues, exchanges, bindings, settings, balanced sets
                 entries of 512 bytes: queues, exchanges, bindings
                 entries of a page: settings for queues whose names match a pattern, balanced sets

Entry of a queue or an exchange: both keep their name in the same place

    0   name length                              0   name length
    8   slots                                    8   kind: direct, topic, fanout, headers
    16  flags                                    16  flags
    24  created, ns since the epoch              24  alternate: reference, 0 none
    32  identity: a random UUID, high            32  (free)
    40  and low half
    48  settings, 208 bytes
    256 name                                     256 name

Participant: who takes part in a vhost.  It is alive as long as somebody holds the lock on the byte
of the segment's file whose number is its id.

    0   state: free, live, leaving       32  joined, ns since the epoch
    8   pid                              40  queues it uses
    16  start of the process             48  name length
    24  namespace of the pid             56  name
    120 how far its transaction is: none, prepared, committed
    128 when whoever is to leave had joined
    136 words: reference to a queue, and in the highest bits what it does there

Transaction: what a participant commits, in a segment with a record for each; only the record of
one that has begun a transaction has memory behind it

    0   how many operations
    8   1: on a durable queue too
    16  its number among those
    64  operations of 32 bytes, each
        0   reference to a queue; with bit 62 a message is acknowledged there, else published
        8   position of the message, or offset of its chunk
        16  its LEASED word, or the origin in its chunk: its number in a series of the ring
        24  (free)

Histograms of a queue, in a segment of their own: times are counted in stripes, each written by one
port, but for the first, which is for all that found none

    page 0       identity: magic, version, bytes, arena, queue | range and digits
    page 1...    a word a stripe: 0 free, else its owner | 1 once it has memory behind it
                 stripes: for each kind so many counts, then that of what fits in none of them

Entry of a binding

    0   source       reference to an exchange
    8   destination  reference
    16  kind         of the destination: 0 queue, 1 exchange (the number of its table)
    24  match        of headers: 0 all, 1 any
    32  key length
    40  arguments length
    64  key, then arguments (a MessagePack map)

Balanced set (balance.py)

    0    turn        how many were given
    128  version     its lowest bit says which copy is valid
    256  two copies of 1,024 bytes, each
         0   how many members
         8   eligible: a bit a member
         16  members: reference to a queue, target
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

# --- positions ------------------------------------------------------------------------------------
POSITION_BITS: Final = 48
POSITION_MASK: Final = (1 << POSITION_BITS) - 1
EPOCH_SHIFT: Final = POSITION_BITS
EPOCH_STEP: Final = 1 << EPOCH_SHIFT

# --- slot -----------------------------------------------------------------------------------------
SLOT_SHIFT: Final = 6
SLOT_BYTES: Final = 1 << SLOT_SHIFT
SLOT_WORD_AT: Final = 0
SLOT_LEASE_AT: Final = 8
SLOT_VERDICT_AT: Final = 16
SLOT_TAKEN_AT: Final = 24  # cycles, 0 unknown: only kept while times are recorded
SLOT_CHAIN_AT: Final = 32  # the newest message of those whose keys lead to this slot
SLOT_OLDER_AT: Final = 40  # what comes after the message here, in its chain
SLOT_TOLD_AT: Final = 48  # the LEASED word of a slow consumer, of whom it was told
# 56..63: room for what a later layout-compatible feature keeps beside a message

LINK_LAP_SHIFT: Final = POSITION_BITS
LINK_LAP_MASK: Final = 0x3FFF
LINK_OUT: Final = 1 << 62  # the message is done with: nothing is put behind it any more

LEASE_DEADLINE_SHIFT: Final = 24
LEASE_DELIVERIES_SHIFT: Final = 20
LEASE_LAP_SHIFT: Final = 12
LEASE_LAP_MASK: Final = 0xFF
LEASE_TAG_MASK: Final = (1 << LEASE_DEADLINE_SHIFT) - 1
LEASE_OVER: Final = 1  # as a deadline: somebody is about to revoke the delivery

# --- gate -----------------------------------------------------------------------------------------
GATE_ACTIVE_SHIFT: Final = 62
GATE_ACTIVE: Final = 1 << GATE_ACTIVE_SHIFT
GATE_LIFE_SHIFT: Final = 60
GATE_LIFE_MASK: Final = 3
GATE_OWNER_SHIFT: Final = POSITION_BITS
GATE_BYTES: Final = PAIR_BYTES
GATES: Final = 64

GATE_FLEETING: Final = 0  # dropped when its owner is dead
GATE_LASTING: Final = 1  # stands still and waits for the next owner: journal, replica

# beside its word, for who looks for a gate by kind and name: not changed while it is active
GATE_KIND_AT: Final = 8
GATE_SINCE_AT: Final = 16  # ns since the epoch, when its owner took it; 0 unknown
GATE_NAME_LENGTH_AT: Final = 24
GATE_NAME_AT: Final = 32
GATE_NAME_BYTES_MAX: Final = GATE_BYTES - GATE_NAME_AT

GATE_SUBSCRIPTION: Final = 0
GATE_JOURNAL: Final = 1
GATE_PAGER: Final = 2
GATE_REPLICA: Final = 3
GATE_LINK: Final = 4
GATE_KINDS: Final = 5

BARRIER_GATES: Final = 63  # which the barrier can be the least of: the first ones

# of a confirm: in which places a message is, beside the ring
CONFIRM_SHM: Final = 0
CONFIRM_DISK: Final = 1
CONFIRM_REPLICATED: Final = 2
CONFIRM_EFFECTIVE: Final = -1  # which the barrier waits for

# --- ring segment ---------------------------------------------------------------------------------
RING_MAGIC: Final = 0x00474E49524D4853  # "SHMRING\0"
RING_MAGIC_AT: Final = 0
RING_VERSION_AT: Final = 8
RING_BYTES_AT: Final = 16
RING_SLOTS_AT: Final = 24
RING_QUEUE_AT: Final = 32
RING_FLAGS_AT: Final = 40
RING_ARENA_AT: Final = 48  # identity of the arena that the chunks are in
RING_JOURNAL_GATE_AT: Final = 56  # 1 + index of the journal's gate; 0: not durable
RING_IDS_AT: Final = 64  # so many message ids are remembered behind the slots, 0 none
RING_IDS_MADE_AT: Final = 72  # 1: that has memory behind it
RING_IDS_LISTED_AT: Final = 80  # ids up to this serial are in lists of the journal
RING_ORIGINS_AT: Final = 88  # there is room behind that for so many origins, 0 none
RING_ORIGINS_MADE_AT: Final = 96  # so many of them have memory behind them
RING_IDENTITY_BYTES: Final = 104
RING_BARRIER_SET_AT: Final = 128  # a bit for each gate that the barrier is the least of
RING_CONFIRMED_AT: Final = 256  # epoch and position: below it all is confirmed (barrier.py)
RING_COPIED_AT: Final = 512  # 1 + what replicas lack from; 0: confirms wait for none (barrier.py)
RING_CHANGES_AT: Final = 1024  # moves when something that was passed over may be taken after all
COUNTER_CARRIED_AT: Final = 1152  # counters for which there is no more room at RING_COUNTERS_AT
COUNTER_REPLACED_AT: Final = COUNTER_CARRIED_AT + 8
COUNTER_SLOW_AT: Final = COUNTER_CARRIED_AT + 16
RING_REPLACING_AT: Final = COUNTER_CARRIED_AT + 24  # moves before a message is replaced or carried
RING_BUCKETS_AT: Final = 2048

BUCKETS: Final = 256  # at most; a ring without groups has none
BUCKET_SHIFT: Final = 3
BUCKET_SERIAL_BITS: Final = 40
BUCKET_RANK_BITS: Final = 8
BUCKET_SERIAL_MASK: Final = (1 << BUCKET_SERIAL_BITS) - 1
BUCKET_RANK_SHIFT: Final = BUCKET_SERIAL_BITS
BUCKET_RANK_MASK: Final = (1 << BUCKET_RANK_BITS) - 1
BUCKET_OWNER_SHIFT: Final = BUCKET_RANK_SHIFT + BUCKET_RANK_BITS
BUCKET_STATE_SHIFT: Final = BUCKET_OWNER_SHIFT + OWNER_BITS
BUCKET_FREE: Final = 0
BUCKET_BOUND: Final = 1
BUCKET_SETTLED: Final = 2
RANK_MAX: Final = 100  # of a consumer: its priority
RANK_EXCLUSIVE: Final = BUCKET_RANK_MASK
GROUP_BYTES_MAX: Final = 255

NOT_OURS: Final = 0  # whether a consumer may take from a bucket
OURS: Final = 1
AGAIN: Final = 2  # it has just changed hands: look from head again
PENDING: Final = 3  # it is ours, and somebody else still has a message of it in hand

RING_TAIL_AT: Final = PAGE_BYTES
RING_CLOSED_AT: Final = (
    RING_TAIL_AT + 8
)  # of a replica: CLOSED, DELETABLE, or 0 once it is detached
RING_BALANCE_AT: Final = RING_TAIL_AT + 16  # reference to its balanced set, 0: it has none
RING_TAKE_AT: Final = RING_TAIL_AT + PAIR_BYTES
RING_MODE_AT: Final = RING_TAKE_AT + 8  # 0 for a plain ring; beside take, which takers load
RING_RECORDING_AT: Final = RING_TAKE_AT + 16  # number of the histograms to count in, 0 none
RING_HISTOGRAMS_AT: Final = RING_TAKE_AT + 24  # number of the histograms that there are, 0 none
RING_SAMPLE_AT: Final = RING_TAKE_AT + 32  # one message in this + 1 is recorded, a power of two
MODE_PAUSED: Final = 1  # nothing is taken
MODE_SINGLE: Final = 2  # one consumer at a time: all messages are in bucket 0
MODE_KEPT: Final = 4  # nor ever: consumers look, each at its own place
MODE_REPLICA: Final = 8  # nor, while it follows a queue of another broker (replica.py)
MODE_LEVELS_SHIFT: Final = 8  # so many levels of priority, 0 none
MODE_LEVELS_MASK: Final = 0xFF
MODE_BUCKETS_SHIFT: Final = 16  # so many buckets of groups, 0 none
MODE_BUCKETS_MASK: Final = 0xFFFF
RING_HEAD_AT: Final = RING_TAKE_AT + PAIR_BYTES
RING_GATES_HIGH_AT: Final = RING_HEAD_AT + 8  # gates at this index and above were never joined
RING_CONSUMER_BELL_AT: Final = RING_HEAD_AT + PAIR_BYTES
RING_SUBSCRIBER_BELL_AT: Final = RING_CONSUMER_BELL_AT + 8  # publishers look at both at once
RING_PRODUCER_BELL_AT: Final = RING_CONSUMER_BELL_AT + PAIR_BYTES
RING_CONFIRM_BELL_AT: Final = RING_PRODUCER_BELL_AT + 8  # for who waits until the barrier moves
RING_COUNTERS_AT: Final = RING_PRODUCER_BELL_AT + PAIR_BYTES
RING_SETTINGS_AT: Final = 2 * PAGE_BYTES  # a page for per-queue settings
RING_GATES_AT: Final = 3 * PAGE_BYTES

# settings of a queue, in RING_SETTINGS_AT: written before the ring has a name, and never changed.
# Their places are in the table of ipc/settings/setting.py.
SETTING_LAST_VALUE_AT: Final = RING_SETTINGS_AT + 112
SETTING_NUMBERS_END: Final = RING_SETTINGS_AT + 456
SETTING_REPLICATE_AT: Final = RING_SETTINGS_AT + 224  # REPLICATE_*
SETTING_REPLICA_AT: Final = RING_SETTINGS_AT + 456  # 1 + the position at which it began, 0 none
SETTING_SCHEDULED_AT: Final = RING_SETTINGS_AT + 464  # of a schedule, in the journal: its last id
SETTING_INBOX_OF_AT: Final = RING_SETTINGS_AT + 472  # of an inbox: reference to its queue
SETTINGS_SERIAL_AT: Final = RING_SETTINGS_AT + 480  # of a pattern: the highest is valid
SETTINGS_SET_AT: Final = RING_SETTINGS_AT + 488  # a bit a setting: given by who declared it
SETTING_SCHEDULE_OF_AT: Final = RING_SETTINGS_AT + 496  # of a schedule: reference to its queue
SETTINGS_GIVEN_LENGTH_AT: Final = RING_SETTINGS_AT + 504
SETTING_NAMES_AT: Final = RING_SETTINGS_AT + 512  # of each its length, then itself
SETTINGS_PATTERN_AT: Final = RING_SETTINGS_AT + 1536  # of a pattern: its length, then it
SETTING_REPLICA_OF_AT: Final = (
    SETTINGS_PATTERN_AT  # of a replica: length of what it follows, then it
)
REPLICA_OF_BYTES_MAX: Final = 504
SETTINGS_GIVEN_AT: Final = RING_SETTINGS_AT + 2048
"""For people, in MessagePack: a map of what was declared; then, of each pattern that gave
something, its name, the bits of what it gave, and a map of all that it has."""
SETTINGS_GIVEN_BYTES_MAX: Final = 2048

BLOCK: Final = 0  # when full
FAIL: Final = 1
DROP_OLDEST: Final = 2
PAGE: Final = 3

REPLICATE_ALL: Final = 0  # also of journals of before there was a choice
REPLICATE_CONFIGURATION: Final = 1
REPLICATE_NONE: Final = 2
REPLICATE_UNSAID: Final = 3  # where no member has the vhost; as REPLICATE_ALL, if one ever has

NOTIFY: Final = 0  # of a slow consumer
DISCONNECT: Final = 1

MAX_DELIVERIES: Final = 10  # unless said otherwise
AUTO_DELETE_DELAY_NS: Final = 60_000_000_000
DUPLICATE_IDS: Final = 20_000
DUPLICATE_IDS_MAX: Final = 1 << 22
MAX_DELIVERIES_MAX: Final = 14  # the slot word counts to 15
MULTIPLIER_UNIT: Final = 1_000_000
MULTIPLIER_MAX: Final = 1000 * MULTIPLIER_UNIT
CONFIRM_REPLICAS_MAX: Final = 7
MAX_SCHEDULED: Final = 100_000
MAX_SCHEDULED_MAX: Final = 1 << 23  # with some room to spare in the largest ring
RING_PRODUCERS_AT: Final = RING_GATES_AT + GATES * GATE_BYTES
PRODUCERS: Final = 64  # entry 0 is never used: it means "not numbered"
PRODUCER_BYTES: Final = LINE_BYTES
PRODUCER_IDENTITY_AT: Final = 0
PRODUCER_SEQUENCE_AT: Final = 8
SERIES_KEPT: Final = 8  # entries that producers leave to transactions
SERIES_IDLE: Final = -1 << OWNER_BITS
"""As an identity: a series of numbers for a transaction, in nobody's hand.  Above it and below 0:
in that of the participant with the negative number.  Above 0: a producer's, for good."""
RING_SLOTS_START: Final = RING_PRODUCERS_AT + PRODUCERS * PRODUCER_BYTES

IDS_COUNT_AT: Final = 0
IDS_BUCKETS_AT: Final = PAIR_BYTES
IDS_BUCKET_BYTES: Final = 8
IDS_ENTRY_BYTES: Final = 32
IDS_BEFORE_AT: Final = 24
IDS_PART_BITS: Final = 42
IDS_PART_MASK: Final = (1 << IDS_PART_BITS) - 1
IDS_LAP_BITS: Final = 21
IDS_LAP_MASK: Final = (1 << IDS_LAP_BITS) - 1
ID_ELSEWHERE: Final = (1 << 63) - 1
"""Both halves of what stands for an id that was published at a node that has left."""
INHERITED_NODES: Final = 16  # of which a queue remembers ids
INHERITED_BYTES: Final = 4096  # of a row of them

ORIGINS: Final = (1 << 15) - PRODUCERS  # at once; their numbers in a chunk begin at PRODUCERS
ORIGIN_BYTES: Final = LINE_BYTES
ORIGIN_STATE_AT: Final = 0
ORIGIN_HIGH_AT: Final = 8
ORIGIN_LOW_AT: Final = 16
ORIGIN_NUMBER_AT: Final = 24
ORIGIN_OWNER_AT: Final = 32
ORIGIN_USED_AT: Final = 40
ORIGIN_FROM_AT: Final = 48
ORIGIN_KEPT_AT: Final = 56
ORIGIN_OF_AT: Final = ORIGIN_HIGH_AT
ORIGIN_MISSED_AT: Final = ORIGIN_LOW_AT
ORIGIN_FREE: Final = 0
ORIGIN_KNOWN: Final = 1
ORIGIN_COUNTED: Final = 3
ORIGIN_OPEN: Final = 4
OPEN_NUMBERS_MAX: Final = 1000  # of an origin
ORIGIN_GENERATION: Final = 1 << 48  # one more, in the word with the number
ORIGIN_NUMBER_BITS: Final = (1 << 63) - 1

SLOTS_MIN: Final = 2
SLOTS_MAX: Final = 1 << 24

RING_BROADCAST: Final = 1  # flag: no consumer takes; a message is done when every gate is past it
RING_REPLICA: Final = 2  # flag: it was made to follow a queue of another broker (replica.py)
CLOSED: Final = 1  # only its applier publishes, takes and deletes
DELETABLE: Final = 2  # the same, but it may be deleted: there is nothing any more that it follows
CLOSED_LAPS: Final = 2  # so far behind is a slot that is free and closed

# counters of rare events, in RING_COUNTERS_AT
COUNTER_GIVEN_BACK_AT: Final = RING_COUNTERS_AT
COUNTER_REVOKED_AT: Final = RING_COUNTERS_AT + 8
COUNTER_EXPIRED_AT: Final = RING_COUNTERS_AT + 16
COUNTER_DROPPED_AT: Final = RING_COUNTERS_AT + 24
COUNTER_DAMAGED_AT: Final = RING_COUNTERS_AT + 32
COUNTER_REJECTED_AT: Final = RING_COUNTERS_AT + 40
RING_NEXT_EXPIRY_AT: Final = RING_COUNTERS_AT + 48
"""No message expires before this, in monotonic ns; 0: none does."""
RING_USED_AT: Final = RING_COUNTERS_AT + 56  # monotonic ns; kept for AUTO_DELETE only
RING_DOOMED_AT: Final = RING_COUNTERS_AT + 64  # 1: somebody is about to delete the queue
RING_SCHEDULE_AT: Final = RING_COUNTERS_AT + 72  # reference to its schedule, 0: it has none
RING_DUE_AT: Final = RING_COUNTERS_AT + 80  # of a schedule: its due word
RING_SCHEDULED_AT: Final = RING_COUNTERS_AT + 88  # of a schedule: the last id that was given
COUNTER_DELAYED_AT: Final = RING_COUNTERS_AT + 96  # left for the schedule, to be redelivered later
COUNTER_DUPLICATES_AT: Final = RING_COUNTERS_AT + 104  # that never were in the ring
COUNTER_WITHDRAWN_AT: Final = RING_COUNTERS_AT + 112  # and those that were
RING_ACKNOWLEDGED_AT: Final = (
    RING_COUNTERS_AT + 120
)  # a transaction has acknowledged none from here on
IN_INBOX: Final = POSITION_MASK + 1  # in what publishing answers: the position is one in the inbox
WAY_SHIFT: Final = POSITION_BITS + 1
"""Above these bits of what publishing answers: the number of the queue towards another node that
has the message (ipc/queue/balanced.c), 0: it is in the queue itself."""
WAYS_MAX: Final = 1024
RING_INBOX_AT: Final = RING_COUNTERS_AT + 128  # reference to its inbox, 0: it has none (inbox.c)

# and of an inbox
RING_PAGING_AT: Final = RING_COUNTERS_AT + 136  # 0: publish to the queue itself
RING_PAGED_NEXT_AT: Final = RING_COUNTERS_AT + 144  # all below is in the queue's ring, or dropped
RING_PAGED_BYTES_AT: Final = RING_COUNTERS_AT + 152  # in page files
RING_PURGE_AT: Final = RING_COUNTERS_AT + 160  # all below is to be dropped
COUNTER_PURGED_AT: Final = RING_COUNTERS_AT + 168
COUNTER_MISSING_AT: Final = RING_COUNTERS_AT + 176  # page files have lost them
RING_PAGES_CODE_AT: Final = RING_COUNTERS_AT + 184  # why pages cannot be written, OK: they can

RING_ASIDE_AT: Final = RING_COUNTERS_AT + 192  # 1: there may be messages that are set aside
RING_ORIGINS_PASSED_AT: Final = RING_COUNTERS_AT + 200  # counts numbers noted without a message
RING_ORIGINS_OPEN_AT: Final = RING_COUNTERS_AT + 208  # no more numbers than these are open
RING_LEVELS_AT: Final = RING_COUNTERS_AT + 2 * PAIR_BYTES  # a hint for each level of priority
LEVELS: Final = 10
LEVEL_DEFAULT: Final = 4

# --- arena segment --------------------------------------------------------------------------------
ARENA_MAGIC: Final = 0x414E4552414D4853  # "SHMARENA"
ARENA_MAGIC_AT: Final = 0
ARENA_VERSION_AT: Final = 8
ARENA_BYTES_AT: Final = 16
ARENA_BLOCK_BYTES_AT: Final = 24
ARENA_BLOCKS_AT: Final = 32
ARENA_IDENTITY_AT: Final = 40
ARENA_IDENTITY_BYTES: Final = 64
ARENA_SERVES_UNTIL_AT: Final = PAIR_BYTES  # a count of cycles, 0: for ever (see core/visible.py)
SERVES_NOT: Final = 1  # a count that is long over
SERVES_COPIES: Final = -(1 << 62)  # for ever; below 0, what the disk alone has is not confirmed
ARENA_AHEAD_AT: Final = PAIR_BYTES + 8  # whether replicas confirm what this disk lacks: AHEAD_*
AHEAD_ALLOWED: Final = 0
AHEAD_REFUSED: Final = 1
AHEAD_ASKED: Final = 2  # a program would like to; its broker sees to it
ARENA_FOLLOWERS_AT: Final = 2 * PAIR_BYTES  # bells of followers: see core/bell.py
FOLLOWERS: Final = (PAGE_BYTES - ARENA_FOLLOWERS_AT) // PAIR_BYTES
FOLLOWER_JOURNALER: Final = 0  # which of them is the journaler's,
FOLLOWER_PAGER: Final = 1  # and the pager's
FOLLOWERS_FREE: Final = 2  # from here on: whoever wants one
FOLLOWER_BELL_AT: Final = 0
FOLLOWER_OWNER_AT: Final = 8  # a participant, 0: nobody has it
FOLLOWER_RUNG_AT: Final = LINE_BYTES
RUNG_WORDS: Final = 8
RUNG_BITS: Final = 62
RUNG_ROWS: Final = RUNG_WORDS * RUNG_BITS
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
CHUNK_TARGET_AT: Final = (
    56  # of a message towards another node: its queue there (ipc/sink/target.c)
)
CHUNK_EXTENSION_BYTES: Final = 32
CHUNK_ONCE_BYTES: Final = 16

SHAPE_BODY_SHIFT: Final = 32
SHAPE_KEY_SHIFT: Final = 16
SHAPE_LENGTH_MASK: Final = 0xFFFF
BODY_BYTES_MAX: Final = (1 << 31) - (1 << 18)  # with all that it has, no more than a record has
KEY_BYTES_MAX: Final = 0xFFFF
PROPERTIES_BYTES_MAX: Final = 0xFFFF

ORIGIN_PRODUCER_SHIFT: Final = 48
SEQUENCE_MASK: Final = (1 << 48) - 1

MARK_MAGIC: Final = 0x5B17
MARK_MAGIC_SHIFT: Final = 48
MARK_FLAGS_SHIFT: Final = 32
MARK_FLAGS_MASK: Final = 0xFFFF
MARK_PRIORITY_SHIFT: Final = 24
MARK_PRIORITY_MASK: Final = 0xFF
MARK_AGE_SHIFT: Final = 4
MARK_AGE_MASK: Final = 0xFFFFF
MARK_DELIVERIES_MASK: Final = DELIVERIES_MASK
CARRIED_SLOTS_MAX: Final = MARK_AGE_MASK + 1  # of a ring in which messages are carried
CARRIED_PART: Final = 16
"""One slot of so many is only for what is carried."""
CHUNK_EXTENDED: Final = 1
CHUNK_ONCE: Final = 2  # of several that are the same, one counts
CHUNK_CARRIED: Final = 4  # it has another age than its position says: see carry.py
CHUNK_RETURNED: Final = 8  # it was there before, and may be older than all of its key: latest.py

SCHEDULED_ID_AT: Final = 0  # in the body of a message in a schedule
SCHEDULED_TIME_AT: Final = 8
SCHEDULED_DUE_AT: Final = 16  # by the time of day when it was put there, for another boot
SCHEDULED_BYTES: Final = 32
DUE_CLAIMED: Final = 1

# --- catalog segment ------------------------------------------------------------------------------
CATALOG_MAGIC: Final = 0x474C5441434D4853  # "SHMCATLG"
CATALOG_MAGIC_AT: Final = 0
CATALOG_VERSION_AT: Final = 8
CATALOG_BYTES_AT: Final = 16
CATALOG_ARENA_AT: Final = 24  # identity of the vhost's arena
CATALOG_BOOT_AT: Final = 32  # hash of the boot that it was made in
CATALOG_NAME_LENGTH_AT: Final = 40
CATALOG_RESTORING_AT: Final = 48  # 1: it is being restored, and nobody else may use it
CATALOG_RETIRED_AT: Final = 56  # 1: its broker is live no more, and this is nobody's vhost
CATALOG_NAME_AT: Final = 64
CATALOG_NAME_BYTES_MAX: Final = 128
CATALOG_IDENTITY_BYTES: Final = CATALOG_NAME_AT + CATALOG_NAME_BYTES_MAX

CATALOG_NODE_AT: Final = 256  # of which node of a cluster it is (ipc/catalog/node.c); a 0 ends it
CATALOG_NODE_BYTES: Final = 192
CATALOG_REPLICATE_AT: Final = 1008  # 1 + REPLICATE_* of who does not say it, 0: no member has it
CATALOG_MOVED_AT: Final = 1016  # 1: its broker serves no more, and its queues are out of reach
CATALOG_MOVED_TO_AT: Final = 1024  # where another one serves: a uri, with a 0 at its end
CATALOG_MOVED_TO_BYTES: Final = 1024
CATALOG_GENERATION_AT: Final = PAGE_BYTES  # moves after each change: a route of before is stale
CATALOG_CHANGING_AT: Final = CATALOG_GENERATION_AT + 8  # 1: somebody changes it, or died doing so
CATALOG_HIGH_AT: Final = CATALOG_GENERATION_AT + PAIR_BYTES
"""A word a table: rows at this index and above were never used."""

QUEUES: Final = 0  # the tables
EXCHANGES: Final = 1
BINDINGS: Final = 2
SETTINGS: Final = 3
BALANCES: Final = 4
TABLES: Final = 5
QUEUE_ROWS: Final = 1 << 15
EXCHANGE_ROWS: Final = 1 << 12
BINDING_ROWS: Final = 1 << 17
SETTINGS_ROWS: Final = 1 << 9
BALANCE_ROWS: Final = 1 << 13

ROW_SHIFT: Final = 3
ROW_BYTES: Final = 1 << ROW_SHIFT
ROW_HASH_BITS: Final = 32
ROW_HASH_MASK: Final = (1 << ROW_HASH_BITS) - 1
ROW_GENERATION_SHIFT: Final = ROW_HASH_BITS
ROW_GENERATION_BITS: Final = 30
ROW_GENERATION_MASK: Final = (1 << ROW_GENERATION_BITS) - 1
ROW_LIVE_SHIFT: Final = ROW_GENERATION_SHIFT + ROW_GENERATION_BITS
ROW_LIVE: Final = 1 << ROW_LIVE_SHIFT
ROW_TAG: Final = ROW_LIVE | ROW_HASH_MASK  # what a search compares

REFERENCE_INDEX_BITS: Final = 24
REFERENCE_INDEX_MASK: Final = (1 << REFERENCE_INDEX_BITS) - 1

QUEUE_COLUMN_AT: Final = 2 * PAGE_BYTES
EXCHANGE_COLUMN_AT: Final = QUEUE_COLUMN_AT + QUEUE_ROWS * ROW_BYTES
BINDING_COLUMN_AT: Final = EXCHANGE_COLUMN_AT + EXCHANGE_ROWS * ROW_BYTES
SETTINGS_COLUMN_AT: Final = BINDING_COLUMN_AT + BINDING_ROWS * ROW_BYTES
BALANCE_COLUMN_AT: Final = SETTINGS_COLUMN_AT + SETTINGS_ROWS * ROW_BYTES
CATALOG_COLUMNS_END: Final = BALANCE_COLUMN_AT + BALANCE_ROWS * ROW_BYTES

ENTRY_SHIFT: Final = 9
ENTRY_BYTES: Final = 1 << ENTRY_SHIFT
QUEUE_ENTRIES_AT: Final = CATALOG_COLUMNS_END
EXCHANGE_ENTRIES_AT: Final = QUEUE_ENTRIES_AT + QUEUE_ROWS * ENTRY_BYTES
BINDING_ENTRIES_AT: Final = EXCHANGE_ENTRIES_AT + EXCHANGE_ROWS * ENTRY_BYTES
SETTINGS_ENTRIES_AT: Final = BINDING_ENTRIES_AT + BINDING_ROWS * ENTRY_BYTES
SETTINGS_ENTRY_SHIFT: Final = 12  # as the page of a ring
SETTINGS_ENTRY_BYTES: Final = 1 << SETTINGS_ENTRY_SHIFT
BALANCE_ENTRIES_AT: Final = SETTINGS_ENTRIES_AT + SETTINGS_ROWS * SETTINGS_ENTRY_BYTES
BALANCE_ENTRY_SHIFT: Final = 12
BALANCE_ENTRY_BYTES: Final = 1 << BALANCE_ENTRY_SHIFT
CATALOG_TABLES_END: Final = BALANCE_ENTRIES_AT + BALANCE_ROWS * BALANCE_ENTRY_BYTES
CATALOG_BYTES: Final = CATALOG_TABLES_END

ENTRY_NAME_LENGTH_AT: Final = 0
ENTRY_NAME_AT: Final = 256
NAME_BYTES_MAX: Final = 255

QUEUE_SLOTS_AT: Final = 8
QUEUE_FLAGS_AT: Final = 16
QUEUE_SLOTS: Final = 1024  # unless said otherwise
QUEUE_CREATED_AT: Final = 24
QUEUE_IDENTITY_HIGH_AT: Final = 32
QUEUE_IDENTITY_LOW_AT: Final = 40
QUEUE_OWNER_AT: Final = 48  # the participant that it belongs to, 0 nobody (ipc/catalog/ownership.c)
QUEUE_SETTINGS_AT: Final = 56
QUEUE_SETTINGS_BYTES: Final = ENTRY_NAME_AT - QUEUE_SETTINGS_AT

QUEUE_TEMPORARY: Final = 1  # flag: it is deleted when its owner leaves or dies
QUEUE_SUBSCRIPTION: Final = 2
QUEUE_SHARED: Final = 4  # a subscription that several consume at once
QUEUE_AUTO_DELETE: Final = 8  # it is worth a look whether it is still used
QUEUE_SCHEDULE: Final = 16  # the schedule of another: it has no name for people
QUEUE_SLOW: Final = 32  # or whether a consumer is slow
QUEUE_INBOX: Final = 128  # the inbox of another that pages: no name either
QUEUE_MARKS: Final = 256  # how far streams are in exchanges (ipc/sink/routed.c): no name either
QUEUE_DURABLE: Final = 64  # what is in it is in the journal too

EXCHANGE_KIND_AT: Final = 8
EXCHANGE_FLAGS_AT: Final = 16
EXCHANGE_ALTERNATE_AT: Final = 24
EXCHANGE_REPLICATE_AT: Final = 32
EXCHANGE_DIVERTS: Final = 1  # flag: it has, or had, an exclusive binding
EXCHANGE_FORWARDS: Final = 2  # flag: or one of an agent

DIRECT: Final = 0
TOPIC: Final = 1
FANOUT: Final = 2
HEADERS: Final = 3

BINDING_SOURCE_AT: Final = 0
BINDING_DESTINATION_AT: Final = 8
BINDING_KIND_AT: Final = 16
BINDING_MATCH_AT: Final = 24
BINDING_KEY_LENGTH_AT: Final = 32
BINDING_ARGUMENTS_LENGTH_AT: Final = 40
BINDING_EXCLUSIVE_AT: Final = 48  # 1: what it takes goes to no other binding of its exchange
BINDING_TARGET_AT: Final = 56
"""0: a user's binding.  Others are the cluster's: with the target of what it takes, which tells the
node that its queue leads to where it goes there, or BINDING_HERE."""
BINDING_HERE: Final = -1  # its queue is here
BINDING_KEY_AT: Final = 64
BINDING_PAYLOAD_BYTES: Final = ENTRY_BYTES - BINDING_KEY_AT  # key and arguments together

# --- an exchange or a binding as a record of the journal; private memory --------------------------
DECLARED_TABLE_AT: Final = 0
DECLARED_KIND_AT: Final = 8  # of an exchange; of a binding: BINDING_TARGET_AT
DECLARED_OPTION_AT: Final = 16  # of an exchange: REPLICATE_*; of a binding: BINDING_MATCH_AT
DECLARED_EXCLUSIVE_AT: Final = 24
DECLARED_TO_EXCHANGE_AT: Final = 32
DECLARED_FIRST_LENGTH_AT: Final = 40  # of two names, a key and arguments, one after the other
DECLARED_SECOND_LENGTH_AT: Final = 48
DECLARED_KEY_LENGTH_AT: Final = 56
DECLARED_ARGUMENTS_LENGTH_AT: Final = 64
DECLARED_BYTES_AT: Final = 72
DECLARED_RECORD_AT: Final = 2 * ENTRY_BYTES  # in a buffer: it lies behind the entries that it is of
DECLARED_BUFFER_BYTES: Final = (
    DECLARED_RECORD_AT + DECLARED_BYTES_AT + 2 * NAME_BYTES_MAX + BINDING_PAYLOAD_BYTES
)

MATCH_ALL: Final = 0
MATCH_ANY: Final = 1
FORWARD_ALL: Final = 2  # of a message transfer agent: whatever is published
FORWARD_ELSE: Final = 3  # of one: what no other binding of the exchange takes, but those of agents
FORWARD_ONLY: Final = 4  # of one: whatever is published here, and no other binding has it

BALANCE_TURN_AT: Final = 0  # how many turns were given
BALANCE_VERSION_AT: Final = PAIR_BYTES  # its lowest bit says which copy is valid
BALANCE_COPIES_AT: Final = 2 * PAIR_BYTES
BALANCE_COPY_BYTES: Final = 1920
BALANCE_COUNT_AT: Final = 0  # of members, and how many bytes of selectors
BALANCE_COUNT_BITS: Final = 16
BALANCE_ELIGIBLE_AT: Final = 8  # a bit a member
BALANCE_MEMBERS_AT: Final = 16
BALANCE_MEMBERS: Final = 62  # bits of a word that is not negative
MEMBER_QUEUE_AT: Final = 0  # reference
MEMBER_TARGET_AT: Final = 8  # what the other node knows it by, 0: the balanced queue itself
MEMBER_BYTES: Final = 16
BALANCE_SELECTORS_AT: Final = BALANCE_MEMBERS_AT + BALANCE_MEMBERS * MEMBER_BYTES
BALANCE_SELECTORS_BYTES: Final = BALANCE_COPY_BYTES - BALANCE_SELECTORS_AT
# of each selector: a word with its member and, from this bit on, its length; its program, up to the
# next word
BALANCE_SELECTOR_SHIFT: Final = 8

# --- visited: what one search for a route has seen; private memory --------------------------------
VISITED_EXCHANGES: Final = 0  # a bit an exchange: it was, or will be, searched
VISITED_PENDING: Final = VISITED_EXCHANGES + EXCHANGE_ROWS // 8  # it will be
VISITED_QUEUES: Final = VISITED_PENDING + EXCHANGE_ROWS // 8  # a bit a queue: it is in the result
VISITED_TARGET: Final = VISITED_QUEUES + QUEUE_ROWS // 8  # of the last binding that took
VISITED_ARRIVED: Final = VISITED_TARGET + 8  # 1: an agent of another broker has brought the message
ROUTE_VISITED_BYTES: Final = VISITED_ARRIVED + 8
ROUTE_WORDS: Final = 2  # of a queue in a route: its reference, and the target or 0

# --- participants segment -------------------------------------------------------------------------
PARTICIPANTS_MAGIC: Final = 0x00545241504D4853  # "SHMPART\0"
PARTICIPANTS_MAGIC_AT: Final = 0
PARTICIPANTS_VERSION_AT: Final = 8
PARTICIPANTS_BYTES_AT: Final = 16
PARTICIPANTS_ARENA_AT: Final = 24  # identity of the vhost's arena
PARTICIPANTS_HIGH_AT: Final = PAGE_BYTES  # owner ids at this and above were never used
PARTICIPANTS_MOVER_BELL_AT: Final = PARTICIPANTS_HIGH_AT + PAIR_BYTES  # counts: see mover.c
PARTICIPANTS_PAGES_AT: Final = PARTICIPANTS_MOVER_BELL_AT + PAIR_BYTES  # 1: a pager is, or was
PARTICIPANTS_LOG_AT: Final = 2 * PAGE_BYTES
LOG_ENTRIES: Final = 64  # distinct texts; the rarest and oldest makes place
LOG_BYTES: Final = 256
LOG_COUNT_AT: Final = 0
LOG_FIRST_AT: Final = 8  # ns since the epoch
LOG_LAST_AT: Final = 16
LOG_LENGTH_AT: Final = 24
LOG_TEXT_AT: Final = 32
PARTICIPANTS_AT: Final = PARTICIPANTS_LOG_AT + LOG_ENTRIES * LOG_BYTES
PARTICIPANTS: Final = 1 << OWNER_BITS  # 0 is nobody
PARTICIPANT_BYTES: Final = 1024
PARTICIPANTS_USES_AT: Final = PARTICIPANTS_AT + PARTICIPANTS * PARTICIPANT_BYTES
USES_BYTES: Final = QUEUE_ROWS  # of one: a byte for each row, without memory until its list is full
PARTICIPANTS_SELECTORS_AT: Final = PARTICIPANTS_USES_AT + PARTICIPANTS * USES_BYTES
# of one, without memory until it selects: for each selector the reference to its queue, the length
# of its text, and that up to the next word; then a word that is 0
SELECTORS_BYTES: Final = PAGE_BYTES
SELECTORS_OF_QUEUE: Final = 8  # of one participant; what has no place counts as USE_TAKES_ANY
SELECTOR_BYTES_MAX: Final = 512
PARTICIPANTS_BYTES: Final = PARTICIPANTS_SELECTORS_AT + PARTICIPANTS * SELECTORS_BYTES

PARTICIPANT_STATE_AT: Final = 0
PARTICIPANT_PID_AT: Final = 8
PARTICIPANT_START_AT: Final = 16  # of the process, in ticks since the boot
PARTICIPANT_NAMESPACE_AT: Final = 24  # inode of the pid's namespace
PARTICIPANT_JOINED_AT: Final = 32  # ns since the epoch
PARTICIPANT_QUEUES_AT: Final = 40  # how many of the words below are used; more: and USES as well
PARTICIPANT_NAME_LENGTH_AT: Final = 48
PARTICIPANT_NAME_AT: Final = 56
PARTICIPANT_NAME_BYTES_MAX: Final = 56
PARTICIPANT_TRANSACTION_AT: Final = 112
PARTICIPANT_OWNS_AT: Final = 120  # OWNS_*: set before a queue belongs to it
PARTICIPANT_EXPELLED_AT: Final = 128  # when whoever is to leave had joined, 0 nobody
PARTICIPANT_SELECTORS_AT: Final = 136  # 0: it has no memory for them; odd: they are being changed
PARTICIPANT_LIST_AT: Final = 144  # references to the queues that it uses, with what for
PARTICIPANT_OPEN_AT: Final = PARTICIPANT_BYTES - 8  # how many of its transactions have begun
PARTICIPANT_LIST: Final = (PARTICIPANT_OPEN_AT - PARTICIPANT_LIST_AT) // 8

OWNS_QUEUES: Final = 1
OWNS_NO_MORE: Final = 2  # what it owned has been dealt with, and nothing is given to it
REPAIRS: Final = 4  # it looks after all queues: that it has opened one is in nobody's way

PARTICIPANT_FREE: Final = 0
PARTICIPANT_LIVE: Final = 1
PARTICIPANT_LEAVING: Final = 2

TRANSACTION_NONE: Final = 0
TRANSACTION_PREPARED: Final = 1  # series of numbers may be taken; nothing has happened
TRANSACTION_COMMITTED: Final = 2  # all of it happens, whoever does it

USE_CONSUMES: Final = 1 << 62  # in a word of the list
USE_PRODUCES: Final = 1 << 61
USE_SERVES: Final = 1 << 60  # for others: it keeps nobody from deleting the queue
USE_TAKES_ANY: Final = 1 << 59  # and not only what its selectors match, or it has told none
USE_PROMISED: Final = 1 << 58  # an open transaction of it will publish there
USE_SHIFT: Final = 58  # its bits in the byte of a row, of one that does not fit into the list
USE_LISTED: Final = 1 << 5  # there: it uses the queue of this row, for whatever
USES: Final = USE_CONSUMES | USE_PRODUCES | USE_SERVES | USE_TAKES_ANY | USE_PROMISED

# --- transactions segment -------------------------------------------------------------------------
TRANSACTIONS_MAGIC: Final = 0x004E4152544D4853  # "SHMTRAN\0"
TRANSACTIONS_MAGIC_AT: Final = 0
TRANSACTIONS_VERSION_AT: Final = 8
TRANSACTIONS_BYTES_AT: Final = 16
TRANSACTIONS_ARENA_AT: Final = 24  # identity of the vhost's arena
TRANSACTIONS_BEGUN_AT: Final = PAIR_BYTES  # how many on durable queues were counted (commit.py)
TRANSACTIONS_CLOSED_AT: Final = 2 * PAIR_BYTES  # 1: wait before you commit one (ipc/commit/gate.c)
TRANSACTIONS_JOURNALED_AT: Final = 3 * PAIR_BYTES  # so many of them are on disk
TRANSACTIONS_REPLICATED_AT: Final = 4 * PAIR_BYTES  # 1 + so many all replicas have, 0: none is
TRANSACTIONS_CONFIRMED_AT: Final = 5 * PAIR_BYTES  # so many had the effective level: only grows
TRANSACTIONS_UNPLACED_AT: Final = 6 * PAIR_BYTES  # 1: the journal has messages without a place
TRANSACTIONS_PLAIN_AT: Final = 7 * PAIR_BYTES  # how many were on no durable queue
TRANSACTIONS_SHOWING_AT: Final = 8 * PAIR_BYTES  # 1: a moment of replicas is being shown
TRANSACTIONS_AT: Final = PAGE_BYTES
TRANSACTION_BYTES: Final = 32768
TRANSACTIONS_BYTES: Final = TRANSACTIONS_AT + PARTICIPANTS * TRANSACTION_BYTES

TRANSACTION_COUNT_AT: Final = 0
TRANSACTION_DURABLE_AT: Final = 8  # 1: one of its queues is
TRANSACTION_SERIAL_AT: Final = 16  # of its participant's it is this one
TRANSACTION_OPERATIONS_AT: Final = 64
TRANSACTION_OPERATIONS: Final = 1000  # at most
OPERATION_BYTES: Final = 32
OPERATION_QUEUE_AT: Final = 0
OPERATION_WHERE_AT: Final = 8
OPERATION_WORD_AT: Final = 16
OPERATION_ACKS: Final = 1 << 62  # in the word of the queue

# --- steps: how far one who lets a commit happen has come (commit.py); private memory -------------
STEPS_STEP: Final = 0
STEPS_INDEX: Final = 8  # of the next operation
STEPS_QUEUE: Final = 16  # reference to the queue of the present one
STEPS_WHERE: Final = 24
STEPS_WORD: Final = 32
STEPS_BLOCKED: Final = 40  # how many queues had no room, and which
STEPS_BLOCKED_AT: Final = 48
STEPS_BLOCKED_MAX: Final = 64
STEPS_BYTES: Final = STEPS_BLOCKED_AT + 8 * STEPS_BLOCKED_MAX

STEP_ACKNOWLEDGE: Final = 1
STEP_PUBLISH: Final = 2
STEP_RETURN: Final = 3  # the series of numbers that the queue has lent

# --- histograms segment ---------------------------------------------------------------------------
HISTOGRAMS_MAGIC: Final = 0x00545349484D4853  # "SHMHIST\0"
HISTOGRAMS_MAGIC_AT: Final = 0
HISTOGRAMS_VERSION_AT: Final = 8
HISTOGRAMS_BYTES_AT: Final = 16
HISTOGRAMS_ARENA_AT: Final = 24  # identity of the vhost's arena
HISTOGRAMS_QUEUE_AT: Final = 32
HISTOGRAMS_LOWEST_AT: Final = 40  # values down to this are told apart, in ns
HISTOGRAMS_HIGHEST_AT: Final = 48
HISTOGRAMS_DIGITS_AT: Final = 56
HISTOGRAMS_STRIPES_AT: Final = PAGE_BYTES
STRIPES: Final = 17  # the first is everybody's
STRIPE_OWNER_AT: Final = 0
STRIPE_COMMITTED_AT: Final = 8
HISTOGRAMS_COUNTS_AT: Final = 2 * PAGE_BYTES

PUBLISH_TAKE: Final = 0  # the kinds of times
TAKE_ACK: Final = 1
PUBLISH_DURABLE: Final = 2  # of durable queues, by the journaler
KINDS: Final = 3
KINDS_COMMITTED: Final = 2  # at least

LOWEST_NS: Final = 1  # unless said otherwise
HIGHEST_NS: Final = 3_600_000_000_000
HIGHEST_NS_MAX: Final = 1 << 50
DIGITS: Final = 2
DIGITS_MAX: Final = 3

# --- recording: the clock of one port, and where it counts; private memory ------------------------
CLOCK_CYCLES: Final = 0
CLOCK_WINDOW: Final = 8  # so many cycles from there the factor holds
CLOCK_FACTOR: Final = 16  # nanoseconds a cycle, times 2^32
CLOCK_BASE: Final = 24  # ns since the epoch
RECORDING_NUMBER: Final = 32  # of the histograms, 0 none
RECORDING_COUNTS: Final = 40  # address of its stripe
RECORDING_SHARED: Final = 48  # 1: others count there too
RECORDING_UNIT: Final = 56  # exponent of the lowest value
RECORDING_HALF: Final = 64  # exponent of half the buckets that a power of two has
RECORDING_LENGTH: Final = 72  # how many counts a kind has
RECORDING_BYTES: Final = 80

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
PORT_BARRIER: Final = 112  # address of the barrier, 0: the queue is not durable
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
PORT_STOP: Final = 248  # 1: another thread wants this one out of its wait, 2: out of it for good
STOPPED_FOR_GOOD: Final = 2
PORT_RUNS: Final = 256

RUNS: Final = 64
RUN_ENTRY_SHIFT: Final = 5
RUN_START_AT: Final = 0  # offset in the data
RUN_BYTES_AT: Final = 8
RUN_LAST_AT: Final = 16  # last position published from it
RUN_LOANS_AT: Final = 24  # chunks reserved and not yet published
PORT_ROOM: Final = PORT_RUNS + (RUNS << RUN_ENTRY_SHIFT)  # a buffer of the program's
PORT_ROOM_BYTES: Final = PORT_ROOM + 8
PORT_QUEUE_HANDLE: Final = PORT_ROOM + 16  # whose port it is, for the floor above; 0 a bare ring
PORT_MESSAGES_MAX: Final = PORT_ROOM + 24  # how many the ring may hold, 0: its slots
COPIED_BYTES: Final = 1024  # what take_next copies into the room: cheaper than asking for it later
PORT_SPECIAL: Final = PORT_ROOM + 32  # how many of the messages taken last are special (take.py)
PORT_RANK: Final = PORT_ROOM + 40  # the priority of its consumer among others
PORT_LOOKED: Final = PORT_ROOM + 48  # nothing below is for us,
PORT_CHANGES: Final = PORT_ROOM + 56  # while RING_CHANGES is this
PORT_PENDING: Final = PORT_ROOM + 64  # here is one that will be for us; -1: none
PORT_BLOCKED: Final = PORT_ROOM + 72  # a bit a bucket: one of it is in somebody else's hand
PORT_IDS: Final = PORT_BLOCKED + BUCKETS // 8  # address of the memory of message ids
PORT_IDS_MAX: Final = PORT_IDS + 8  # how many it holds, 0: there is none
PORT_FOUND_PLACE: Final = PORT_ROOM + 120  # where chain_find has found a message to hang,
PORT_FOUND_LINK: Final = PORT_ROOM + 128  # and by which link
PORT_SHARE: Final = PORT_ROOM + 136  # bytes of the arena that our participant may hold, 0 all
PORT_RECORDING: Final = PORT_ROOM + 144  # address of it, 0: this port records no times
PORT_ORIGINS: Final = PORT_ROOM + 152  # address of the table of origins
PORT_ORIGINS_MAX: Final = PORT_ROOM + 160  # how many it may hold
PORT_MESSAGE: Final = PORT_ROOM + 192  # the message that was last received into it
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

# --- outgoing: what is to be published; private memory --------------------------------------------
OUTGOING_BODY: Final = 0  # address
OUTGOING_LENGTH: Final = 8
OUTGOING_KEY: Final = 16
OUTGOING_KEY_LENGTH: Final = 24
OUTGOING_PROPERTIES: Final = 32
OUTGOING_PROPERTIES_LENGTH: Final = 40
OUTGOING_TTL: Final = 48
OUTGOING_PRIORITY: Final = 56  # 1 + priority, 0 the default
OUTGOING_ID: Final = 64  # bytes of the message's id; what follows is read by C only
OUTGOING_ID_LENGTH: Final = 72
OUTGOING_PRODUCER: Final = 80  # index in the table of producers, 0 none
OUTGOING_SEQUENCE: Final = 88
OUTGOING_DELAY: Final = 96  # ns
OUTGOING_DELIVER_AT: Final = 104  # ns since the epoch, 0: after the delay
OUTGOING_TARGET: Final = (
    112  # of a message towards another node: whose queue it is (ipc/sink/target.c)
)
OUTGOING_DELIVERIES: Final = (
    120  # how often it may have been delivered at another node; or what is RETURNED
)
OUTGOING_BYTES: Final = 128
RETURNED: Final = CHUNK_RETURNED << MARK_FLAGS_SHIFT

# --- subject: what a selector looks at; private memory --------------------------------------------
SUBJECT_KEY: Final = 0  # address
SUBJECT_KEY_LENGTH: Final = 8
SUBJECT_PROPERTIES: Final = 16  # address of a MessagePack map with text keys
SUBJECT_PROPERTIES_LENGTH: Final = 24
SUBJECT_BODY_LENGTH: Final = 32
SUBJECT_PUBLISHED: Final = 40  # ns since the epoch, 0: unknown
SUBJECT_EXPIRY: Final = 48  # ns since the epoch, 0: never
SUBJECT_PRIORITY: Final = 56
SUBJECT_DELIVERIES: Final = 64  # before this one
SUBJECT_BYTES: Final = 72

# --- pouring: records on their way into a ring (pour.py); private memory --------------------------
POURING_AT: Final = 0  # address of the next record
POURING_END: Final = 8
POURING_LAST: Final = 16  # all numbers up to this one are known
POURING_ANSWERS: Final = 24  # address of the next answer: a word for each record
POURING_COUNT: Final = 32  # so many messages were published
POURING_CHECKS: Final = 40  # 1: an id among the properties of a message counts
POURING_BYTES: Final = 48

# --- paging: records between inbox, files and ring (ipc/paging/); private memory ------------------
GATHERING_AT: Final = 0  # address of the next record
GATHERING_ENOUGH: Final = 8  # none begins there or behind
GATHERING_END: Final = 16  # of the room
GATHERING_FIRST: Final = 24  # messages below this position are passed over,
GATHERING_BELOW: Final = 32  # and none from here on is read
GATHERING_LEFT: Final = 40  # so many messages at most
GATHERING_NEEDED: Final = 48  # room for the record that comes next
GATHERING_MESSAGE: Final = 56
GATHERING_BYTES: Final = GATHERING_MESSAGE + MESSAGE_BYTES

SEALING_AT: Final = 0  # address of the next record,
SEALING_END: Final = 8
SEALING_OFFSET: Final = 16  # and where it is in its file
SEALING_SEED: Final = 24  # of the file
SEALING_NEXT: Final = 32  # behind the highest position so far
SEALING_NEEDED: Final = 40  # bytes of the next record, as far as they are known
SEALING_COVERED: Final = 48  # what the checksum of a head covers: its offset, and the head
SEALING_BYTES: Final = SEALING_COVERED + 40

REFILLING_AT: Final = 0  # address of the next record
REFILLING_END: Final = 8
REFILLING_NEXT: Final = 16  # all positions below are in the ring, or dropped
REFILLING_EXACT: Final = 24  # 1: stop before a position above that, and before what is no message
REFILLING_SLOTS: Final = 32  # the ring may hold so many messages,
REFILLING_BYTES_MAX: Final = 40  # and so many bytes
REFILLING_BYTES_LEFT: Final = 48  # at least so many of them are left
REFILLING_LATER: Final = 56  # is added to times of expiry
REFILLING_MOST: Final = 64  # so many messages at most
REFILLING_COUNT: Final = 72  # that were published
REFILLING_BYTES: Final = 80

APPENDING_LATER: Final = 0  # is added to times of expiry
APPENDING_AHEAD: Final = 8  # how far the time of day is ahead of the clock
APPENDING_IS_SCHEDULE: Final = 16
APPENDING_LAST_ID: Final = 24  # that was given to a message of a schedule
APPENDING_HOLES_BELOW: Final = 32
APPENDING_BYTES: Final = 40

RECORD_HEAD_BYTES: Final = 32  # a record of the journal: ipc/journal/format.h
RECORD_LENGTH_AT: Final = 8  # and the number of its frame
RECORD_FRAME_SHIFT: Final = 32
RECORD_QUEUE_AT: Final = 16
RECORD_WHERE_AT: Final = 24
RECORD_KIND_SHIFT: Final = 56
RECORD_IS_LAST: Final = 1 << 48  # of its frame
RECORD_BEHIND_SHIFT: Final = 49
RECORD_BEHIND_MAX: Final = 127  # so many frames before it may not have been synced
RECORD_IS_MESSAGE: Final = 1
RECORD_STANDS: Final = 64
"""How a queue stands that others follow.  Its position is the head; its body a word, the position
below which all is known; then a bit for each position from head on that is done with."""

# --- a segment of the journal as it is read (ipc/journal/checking.py); private memory -------------
CHECKING_AT: Final = 0  # address of the next frame,
CHECKING_END: Final = 8  # and of where what was read ends
CHECKING_OFFSET: Final = 16  # where the frame is in its file
CHECKING_NUMBER: Final = 24  # which one of its segment it is
CHECKING_SEED: Final = 32  # of the segment
CHECKING_CHECKED: Final = 40  # address: its records below check
CHECKING_WHOLE: Final = 48  # not 0: they are all of the frame
CHECKING_NEEDED: Final = 56  # bytes of it that are wanted, as far as is known
CHECKING_COVERED: Final = 64  # what the checksum of a head covers: its offset, and the head
CHECKING_BYTES: Final = CHECKING_COVERED + 40

PLACE_NUMBER: Final = 0  # of a frame through all segments, or 0
PLACE_EPOCH: Final = 8
PLACE_SEAL: Final = 16
PLACE_CHAIN: Final = 24
PLACE_BYTES: Final = 32

PASSING_TO: Final = 0  # address where frames are copied to, 0: nowhere
PASSING_ROOM: Final = 8  # bytes that are left there
PASSING_NEEDED: Final = 16  # of which the next frame wants so many
PASSING_SERIAL: Final = 24  # of the segment, and its epoch
PASSING_EPOCH: Final = 32
PASSING_AFTER: Final = 40  # the number of the last frame that was copied
PASSING_LAST: Final = 48  # the last frame that was passed,
PASSING_REPEATED: Final = PASSING_LAST + PLACE_BYTES  # the one that it repeats, or none,
PASSING_WANTED: Final = PASSING_REPEATED + PLACE_BYTES  # and the one that is looked for, or none
PASSING_LIST: Final = PASSING_WANTED + PLACE_BYTES  # offset of the last list of segments, or 0
PASSING_BYTES: Final = PASSING_LIST + 8

SHIPPED_NUMBER: Final = 0  # of a frame in a buffer; its records are behind this
SHIPPED_AFTER: Final = 8
SHIPPED_EPOCH: Final = 16
SHIPPED_SEAL: Final = 24
SHIPPED_CHAIN: Final = 32
SHIPPED_LENGTH: Final = 40
SHIPPED_HEAD_BYTES: Final = 48

# --- cursor: a subscriber's place; private memory -------------------------------------------------
CURSOR_PORT: Final = 0
CURSOR_POSITION: Final = 8
CURSOR_GATE: Final = 16  # index of our gate, or one of:
CURSOR_LOSSY: Final = -1
CURSOR_CONFIRMED: Final = -2  # lossy, and sees what is confirmed also while it is not delivered
CURSOR_MISSED: Final = 24  # messages that a lossy cursor was too late for
CURSOR_BYTES: Final = 32

# --- originals: queues that others follow, as they are read (original.py); private memory ---------
ORIGINALS_TRANSACTIONS: Final = 0  # address
ORIGINALS_COMMITTED: Final = 8  # how many transactions there were when the moment was seen
ORIGINALS_COUNT: Final = 16
ORIGINALS_AT: Final = 24  # address of each

ORIGINAL_CURSOR: Final = 0  # itself, with its port
ORIGINAL_NUMBER: Final = CURSOR_BYTES  # in the records
ORIGINAL_END: Final = CURSOR_BYTES + 8  # of the moment
ORIGINAL_HEAD: Final = CURSOR_BYTES + 16  # what is done with at the moment (retired.py)
ORIGINAL_BITS: Final = CURSOR_BYTES + 24  # address: room for a bit of each slot
ORIGINAL_LENGTH: Final = CURSOR_BYTES + 32
ORIGINAL_TOLD_END: Final = CURSOR_BYTES + 40  # what the reader knows, -1: nothing
ORIGINAL_TOLD_HEAD: Final = CURSOR_BYTES + 48
ORIGINAL_TOLD_BITS: Final = CURSOR_BYTES + 56
ORIGINAL_TOLD_LENGTH: Final = CURSOR_BYTES + 64
ORIGINAL_BYTES: Final = CURSOR_BYTES + 72

READING_AT: Final = 0  # address of the next record
READING_LEFT: Final = 8
READING_RECORDS: Final = 16  # that were written
READING_MESSAGES: Final = 24  # among them
READING_NEEDED: Final = 32  # room for the record that comes next
READING_LATE: Final = 40  # 1: something of the moment was gone before it was read
READING_DAMAGED: Final = 48  # number of the queue whose message is damaged,
READING_POSITION: Final = 56  # and where it is
READING_MESSAGE: Final = 64
READING_BYTES: Final = READING_MESSAGE + MESSAGE_BYTES

# --- replica: a queue that is brought to moments of its original (moment.py); private memory ------
REPLICA_PORT: Final = 0  # address
REPLICA_NUMBER: Final = 8  # in the records
REPLICA_LATER: Final = 16  # is added to times of expiry
REPLICA_STAGED: Final = 24  # address of positions and chunks that are filled,
REPLICA_COUNT: Final = 32  # so many,
REPLICA_ROOM: Final = 40  # of so many at most
REPLICA_NEXT: Final = 48  # all below is staged, or shown
REPLICA_HEAD: Final = 56  # of the original, as told last
REPLICA_END: Final = 64  # of what is known, as told last
REPLICA_BITS: Final = 72  # address: what is done with from head on
REPLICA_LENGTH: Final = 80
REPLICA_COMPARED: Final = 88  # 1: nothing has come back there
REPLICA_REVIVED: Final = 96  # 1 + the position of what did
REPLICA_CODE: Final = 104  # why it cannot follow
REPLICA_FAILED: Final = 112  # the position that has no place here
REPLICA_BYTES: Final = 120
STAGED_BYTES: Final = 16

# --- spinning: whether a wait spins (spinning.py); private memory ---------------------------------
SPINNING_PATIENCE: Final = 0  # how many more spins may be in vain
SPINNING_REST: Final = 8  # ns that the next rest takes
SPINNING_END: Final = 16  # ns, of the current rest
SPINNING_TRY_END: Final = 24  # ns, of the try behind it; 0 before that
SPINNING_BYTES: Final = 32
SPINNING_PATIENCE_MAX: Final = 8
SPINNING_LONG: Final = 8  # ordinary spins that one of a try takes

assert STATE_SHIFT + STATE_BITS == 64
assert BLOCK_STATE_SHIFT + STATE_BITS == 64
assert LEASE_DELIVERIES_SHIFT + DELIVERIES_BITS == LEASE_DEADLINE_SHIFT
assert OWNER_BITS + 8 == LEASE_DELIVERIES_SHIFT
assert GATE_OWNER_SHIFT + OWNER_BITS == GATE_LIFE_SHIFT
assert RING_IDENTITY_BYTES <= RING_BARRIER_SET_AT
assert RING_CONFIRMED_AT + PAIR_BYTES <= RING_COPIED_AT
assert RING_COPIED_AT + PAIR_BYTES <= RING_CHANGES_AT
assert RING_CHANGES_AT + PAIR_BYTES <= COUNTER_CARRIED_AT
assert RING_REPLACING_AT < RING_BUCKETS_AT
assert RING_SAMPLE_AT < RING_TAKE_AT + LINE_BYTES
assert HISTOGRAMS_STRIPES_AT + STRIPES * PAIR_BYTES <= HISTOGRAMS_COUNTS_AT
assert RING_ORIGINS_OPEN_AT < RING_LEVELS_AT
assert FOLLOWERS < 31
assert IDS_PART_BITS + IDS_LAP_BITS == 63
assert 3 * IDS_PART_BITS == 2 * 63
assert BUCKET_STATE_SHIFT == 60
assert RANK_MAX < RANK_EXCLUSIVE
assert RING_BUCKETS_AT + (BUCKETS << BUCKET_SHIFT) <= PAGE_BYTES
assert RING_LEVELS_AT + LEVELS * PAIR_BYTES <= RING_SETTINGS_AT
assert RING_PRODUCERS_AT == 5 * PAGE_BYTES
assert RING_SLOTS_START == 6 * PAGE_BYTES
assert CHUNK_HEADER_BYTES + CHUNK_EXTENSION_BYTES == LINE_BYTES
assert BODY_BYTES_MAX + KEY_BYTES_MAX + PROPERTIES_BYTES_MAX + 2 * LINE_BYTES < 1 << 31
assert PORT_STOP < PORT_RUNS
assert MARK_DELIVERIES_MASK < 1 << MARK_AGE_SHIFT
assert MARK_AGE_MASK << MARK_AGE_SHIFT < 1 << MARK_PRIORITY_SHIFT
assert LINK_LAP_MASK << LINK_LAP_SHIFT < LINK_OUT
assert SLOT_TOLD_AT < SLOT_BYTES
assert PORT_IDS_MAX < PORT_FOUND_PLACE
assert PORT_SHARE < PORT_MESSAGE
assert PORT_ORIGINS_MAX < PORT_MESSAGE
assert PORT_BYTES % 64 == 0
assert ROW_LIVE_SHIFT == 62
assert SETTINGS_GIVEN_AT + SETTINGS_GIVEN_BYTES_MAX <= RING_GATES_AT
assert RING_GATES_AT - RING_SETTINGS_AT == SETTINGS_ENTRY_BYTES
assert SETTINGS_ENTRIES_AT % PAGE_BYTES == 0
assert REFERENCE_INDEX_BITS + ROW_GENERATION_BITS < 63
assert CATALOG_IDENTITY_BYTES <= CATALOG_NODE_AT
assert CATALOG_NODE_AT + CATALOG_NODE_BYTES <= CATALOG_REPLICATE_AT
assert CATALOG_HIGH_AT + TABLES * 8 <= QUEUE_COLUMN_AT
assert CATALOG_COLUMNS_END % PAGE_BYTES == 0
assert max(QUEUE_ROWS, EXCHANGE_ROWS, BINDING_ROWS) <= REFERENCE_INDEX_MASK + 1
assert QUEUE_ROWS <= QUEUE_MASK + 1
assert QUEUE_SETTINGS_BYTES >= 120
assert ENTRY_NAME_AT + NAME_BYTES_MAX <= ENTRY_BYTES
assert BINDING_EXCLUSIVE_AT < BINDING_TARGET_AT < BINDING_KEY_AT
assert RING_BALANCE_AT < RING_TAIL_AT + LINE_BYTES
assert BALANCE_MEMBERS < 1 << BALANCE_SELECTOR_SHIFT
assert BALANCE_SELECTORS_BYTES % 8 == 0
assert BALANCE_COPIES_AT + 2 * BALANCE_COPY_BYTES <= BALANCE_ENTRY_BYTES
assert BALANCE_ENTRIES_AT % PAGE_BYTES == 0
assert BINDING_PAYLOAD_BYTES == 448
assert PARTICIPANTS_USES_AT % PAGE_BYTES == 0
assert USES_BYTES % PAGE_BYTES == 0
assert USES >> USE_SHIFT < USE_LISTED
assert PARTICIPANT_NAME_AT + PARTICIPANT_NAME_BYTES_MAX <= PARTICIPANT_TRANSACTION_AT
assert PARTICIPANT_TRANSACTION_AT < PARTICIPANT_OWNS_AT < PARTICIPANT_EXPELLED_AT
assert TRANSACTION_OPERATIONS_AT + TRANSACTION_OPERATIONS * OPERATION_BYTES <= TRANSACTION_BYTES
assert 1 << (REFERENCE_INDEX_BITS + ROW_GENERATION_BITS) <= USE_PROMISED
