"""What is explored: every scenario by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from shmbroker.core import layout as at
from tests.explore import (
    aside,
    balancing,
    committing,
    counting,
    keyed,
    once,
    pouring,
    processes,
    retrying,
)
from tests.explore.cast import EPILOGUE_OWNER, Cast
from tests.explore.confirming import mover_dead, replica_dropped, set_changed
from tests.explore.deleting import deletion_scenario
from tests.explore.expiring import expiry_scenario
from tests.explore.following import follower_scenario
from tests.explore.gate import gate_scenario
from tests.explore.invariants import RingRules
from tests.explore.memory import SHARED
from tests.explore.once_rules import OnceRules
from tests.explore.paging import paging_scenario
from tests.explore.ring import (
    CHUNK_BYTES,
    Geometry,
    RingMemory,
    first_words,
    port_opening,
    ring_set_up,
)
from tests.explore.scenario import Role, Scenario
from tests.explore.serves import broker_paused
from tests.explore.serving import schedule_scenario
from tests.explore.showing import moments_scenario, replica_reclaimed_scenario

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
CURSOR: Final = "cursor"
OTHER: Final = "other"

WORN: Final = Geometry(
    base=2 * at.LAP_MASK,
    head_epoch=0x7FFF,
    take_epoch=-1,
    generation=at.GENERATION_MASK,
)
"""A ring whose lap, epochs and generations wrap within the first messages."""


@dataclass(frozen=True, slots=True)
class Player:
    """One process: its part, its program, and what may happen to it."""

    part: str
    program: Callable[..., int]
    arguments: tuple[int, ...] = ()
    mortal: bool = True
    stoppable: bool = False
    scan: int = 0
    owner: int = 0
    """0: its own; several with the same are threads of one participant, and none is killed."""
    owns: bool = False
    """Has its blocks before the scenario begins."""


@dataclass(frozen=True, slots=True)
class Play:
    """A scenario in few words."""

    geometry: Geometry
    players: tuple[Player, ...]
    messages: int
    kills: int = 0
    stops: int = 0
    answers_max: int = 2
    store_buffers: bool = False
    extra: int = 2
    leases_end: bool = False
    gives_back: bool = False
    drops: bool = False
    lossy: bool = False
    sets_aside: bool = False
    numbered: bool = False
    transaction: int = 0
    retried: int = 0
    """The id that the survivor publishes once more."""
    groups: tuple[int, ...] = ()
    """Of each message of the one producer; 0: none."""
    writers: dict[int, int] = field(default_factory=dict)
    keys: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of each producer the keys of its messages, in a ring that keeps the newest of each."""


def _names(players: Iterable[Player]) -> list[str]:
    counts: dict[str, int] = {}
    names = []
    for player in players:
        stem = player.program.__name__ if player.part == OTHER else player.part
        counts[stem] = counts.get(stem, 0) + 1
        names.append(f"{stem}{counts[stem]}")
    return names


def staged(name: str, play: Play) -> Scenario:
    geometry, players = play.geometry, play.players
    memory = RingMemory(geometry)

    def part(wanted: str) -> tuple[int, ...]:
        return tuple(i for i, player in enumerate(players) if player.part == wanted)

    owners = tuple(player.owner or i + 1 for i, player in enumerate(players))

    def opening(owner: int, scan: int, owns: bool) -> tuple[int, ...]:
        size = geometry.slots, geometry.blocks, geometry.block_bytes
        return *size, owner, scan, int(owns), geometry.ids, geometry.origins

    cast = Cast(
        owners=owners,
        producers=part(PRODUCER),
        consumers=part(CONSUMER),
        cursors=part(CURSOR),
        leases_end=play.leases_end,
        gives_back=play.gives_back,
        drops=play.drops,
        lossy=play.lossy,
        numbered=play.numbered,
        transaction=play.transaction,
        groups=play.groups,
        expected=play.messages,
        writers=play.writers,
    )
    ends, extra = processes.surviving, play.extra
    if play.sets_aside:
        ends = aside.outlasting
    rules = RingRules(geometry, memory, cast)
    if play.keys:
        ends = keyed.outliving
        rules = keyed.KeyedRules(geometry, memory, cast, play.keys)
    elif geometry.origins > 1:
        rules = retrying.RetryingRules(geometry, memory, cast)
    elif geometry.origins:
        rules = pouring.PouringRules(geometry, memory, cast)
    elif geometry.once:
        ends, extra = once.surviving, play.retried
        rules = OnceRules(geometry, memory, cast)
    return Scenario(
        name=name,
        memory=memory,
        setup=ring_set_up,
        setup_arguments=(
            geometry.blocks,
            geometry.flags,
            geometry.barrier,
            geometry.mode,
            geometry.keyed,
            geometry.origins,
        ),
        roles=tuple(
            Role(
                name=each,
                program=player.program,
                arguments=player.arguments,
                opening=port_opening,
                opening_arguments=opening(owners[i], player.scan, player.owns),
                mortal=player.mortal,
                stoppable=player.stoppable,
            )
            for i, (player, each) in enumerate(zip(players, _names(players), strict=True))
        ),
        epilogue=Role(
            name="survivor",
            program=ends,
            arguments=(EPILOGUE_OWNER, extra),
            opening=port_opening,
            opening_arguments=opening(EPILOGUE_OWNER, 0, False),
        ),
        rules=rules,
        watched=(memory.head, *memory.slots, *memory.leases, *memory.verdicts),
        kills=play.kills,
        stops=play.stops,
        store_buffers=play.store_buffers,
        answers_max=play.answers_max,
        poke=first_words(geometry),
    )


def producer(owner: int, last: int, scan: int = 0, **more: bool) -> Player:
    return Player(PRODUCER, processes.producing, (owner, 1, last), scan=scan, **more)


def settled(owner: int, last: int, **more: bool) -> Player:
    """A producer that has its blocks already: the ring is what is explored."""
    return Player(
        PRODUCER, processes.producing, (owner, 1, last), scan=owner - 1, owns=True, **more
    )


def consumer(gives: int = 0, **more: bool) -> Player:
    return Player(CONSUMER, processes.consuming, (gives,), **more)


def level_producer(owner: int, levels: tuple[int, ...], **more: bool) -> Player:
    """Publishes a message of each of these levels, in this order."""
    packed = sum((level + 1) << 4 * i for i, level in enumerate(levels))
    return Player(
        PRODUCER,
        processes.producing_levels,
        (owner, len(levels), packed),
        scan=owner - 1,
        owns=True,
        **more,
    )


def group_producer(owner: int, groups: tuple[int, ...], **more: bool) -> Player:
    """Publishes a message of each of these groups, in this order."""
    packed = sum(group << 4 * i for i, group in enumerate(groups))
    return Player(
        PRODUCER, processes.producing_groups, (owner, len(groups), packed), scan=owner - 1,
        owns=True, **more,
    )  # fmt: skip


def refuser(which: int, most: int, **more: bool) -> Player:
    return Player(CONSUMER, aside.refusing, (which, most), **more)


def late_consumer(**more: bool) -> Player:
    return Player(CONSUMER, processes.consuming_later, (0,), **more)


def stander_down(**more: bool) -> Player:
    """Frees its buckets while it has a message in hand."""
    return Player(CONSUMER, processes.standing_down, **more)


def returner(**more: int) -> Player:
    """Gives back what it takes first, and is no consumer any more."""
    return Player(CONSUMER, processes.returning, **more)


def taker(rank: int, former: int, **more: int) -> Player:
    """Takes one message, if there is one, when the former has ended; is no consumer any more."""
    return Player(CONSUMER, processes.taking, (rank, former), **more)


def outranker(rank: int, **more: bool) -> Player:
    return Player(CONSUMER, processes.outranking, (rank,), **more)


def rebalancer(times: int, **more: bool) -> Player:
    return Player(OTHER, processes.rebalancing, (times,), **more)


def key_producer(owner: int, keys: tuple[int, ...], **more: bool) -> Player:
    """Publishes a message of each of these keys, in this order."""
    packed = sum(key << keyed.KEY_BITS * i for i, key in enumerate(keys))
    return Player(
        PRODUCER,
        keyed.producing_keys,
        (owner, len(keys), packed),
        scan=owner - 1,
        owns=True,
        **more,
    )


def carrier(owner: int, times: int = 1, **more: bool) -> Player:
    return Player(PRODUCER, keyed.carrying, (times,), scan=owner - 1, owns=True, **more)


def leaser(deadline_ms: int) -> Player:
    return Player(CONSUMER, processes.leasing, (deadline_ms,), stoppable=True)


def repairer(times: int, late_ms: int = 0, grace_ms: int = 0, **more: bool) -> Player:
    return Player(OTHER, processes.repairing, (times, late_ms, grace_ms), **more)


def batcher(owner: int, last: int) -> Player:
    return Player(PRODUCER, processes.producing_many, (owner, last), scan=owner - 1, owns=True)


def batch_consumer(count: int) -> Player:
    return Player(CONSUMER, processes.consuming_many, (count,))


def committer(messages: int, **more: bool) -> Player:
    return Player(PRODUCER, committing.committing, (1, messages), scan=0, owns=True, **more)


def undertaker(first: int, last: int, **more: bool) -> Player:
    """Settles for the committer when these have ended."""
    return Player(PRODUCER, committing.undertaking, (1, first, last), **more)


def helper(whom: int) -> Player:
    """Does what is committed, whatever its owner does meanwhile."""
    return Player(PRODUCER, committing.helping, (whom,), mortal=False)


def repeater(owner: int, *identities: int, **more: bool) -> Player:
    """Publishes a message of each of these ids; below 0: of this number of the named producer."""
    packed = sum((each & 15) << 4 * i for i, each in enumerate(identities))
    return Player(
        PRODUCER,
        once.repeating,
        (owner, len(identities), packed),
        scan=owner - 1,
        owns=True,
        **more,
    )


def once_consumer(gives: int = 0, **more: bool) -> Player:
    return Player(CONSUMER, once.consuming, (gives,), **more)


def pourer(owner: int, last: int, former: int = -1, **more: bool) -> Player:
    """Pours records for the origin, when the former has ended."""
    return Player(
        PRODUCER, pouring.pouring, (owner, last, former), scan=owner - 1, owns=True, **more
    )


def retrier(owner: int, last: int, former: int = -1, **more: bool) -> Player:
    """Leaves a number out and retries it, or does what the former has not."""
    return Player(
        PRODUCER, retrying.retrying, (owner, last, former), scan=owner - 1, owns=True, **more
    )


def follower(from_now: int) -> Player:
    return Player(CURSOR, processes.following, (at.GATE_FLEETING, from_now, 1))


def journal() -> Player:
    return Player(CURSOR, processes.following, (at.GATE_LASTING, 0, 0))


def journal_heir() -> Player:
    """Adopts gate 0 once the third process, owner 3, has ended."""
    return Player(CURSOR, processes.inheriting, (0, 2, 3), mortal=False)


def replica() -> Player:
    return Player(CURSOR, processes.following_named, (at.GATE_REPLICA,))


def replica_heir() -> Player:
    """Adopts gate 0 from nobody, once the third process has ended and was repaired."""
    return Player(CURSOR, processes.inheriting, (0, 2, 0), mortal=False)


def glancer(last: int) -> Player:
    return Player(CURSOR, processes.glancing, (last,))


def peerer(last: int) -> Player:
    return Player(CURSOR, processes.peering, (last,))


def late_glancer(last: int, behind: int) -> Player:
    return Player(CURSOR, processes.glancing_late, (last, behind))


def late_producer(owner: int, last: int, behind: int) -> Player:
    return Player(
        PRODUCER, processes.producing_late, (owner, last, behind), scan=owner - 1, owns=True
    )


ROOMY: Final = replace(WORN, blocks=2, block_bytes=4 * CHUNK_BYTES, gates=0)
"""A block for each producer, with room for all that it publishes: the ring is what is explored."""
FAR_BEHIND: Final = ROOMY.slots * (at.LAP_HALF + 1)
"""Positions: in laps more than half of their range."""
KEYED: Final = replace(ROOMY, slots=4, base=4 * at.LAP_MASK, keyed=True)
TIGHT: Final = replace(WORN, blocks=4, block_bytes=CHUNK_BYTES, gates=0)
"""A chunk a block, and few of them: the arena is what is explored."""
GATED: Final = replace(ROOMY, blocks=1)
SINGLE: Final = replace(GATED, slots=4, buckets=1, single=True)
GROUPED: Final = replace(GATED, slots=4, block_bytes=8 * CHUNK_BYTES, buckets=2)

PLAYS: Final[dict[str, Play]] = {
    "pair": Play(
        replace(ROOMY, blocks=3),
        (producer(1, 3), consumer()),
        messages=3,
        kills=1,
    ),
    "exchange": Play(
        ROOMY,
        (settled(1, 1), settled(2, 1), consumer(), consumer()),
        messages=2,
        kills=2,
    ),
    "recycle": Play(
        ROOMY,
        (settled(1, 2), settled(2, 1), consumer()),
        messages=3,
        kills=1,
    ),
    "stopped": Play(
        ROOMY,
        (settled(1, 2, stoppable=True), settled(2, 1), consumer(stoppable=True)),
        messages=3,
        stops=1,
    ),
    "give-back": Play(
        ROOMY,
        (settled(1, 2), consumer(1), consumer()),
        messages=2,
        kills=1,
        gives_back=True,
    ),
    "aside": Play(
        ROOMY,
        (settled(1, 2), refuser(1, 1)),
        messages=2,
        kills=1,
        gives_back=True,
        sets_aside=True,
    ),
    "aside-repaired": Play(
        ROOMY,
        (settled(1, 2), refuser(1, 1), repairer(1)),
        messages=2,
        gives_back=True,
        sets_aside=True,
    ),
    "aside-returned": Play(
        ROOMY,
        (settled(1, 2), returner(), refuser(2, 2)),
        messages=2,
        gives_back=True,
        sets_aside=True,
    ),
    "aside-levels": Play(
        replace(ROOMY, levels=2, slots=4),
        (level_producer(1, (1, 0)), refuser(1, 1)),
        messages=2,
        kills=1,
        gives_back=True,
        sets_aside=True,
    ),
    "aside-groups": Play(
        GROUPED,
        (group_producer(1, (1, 1), mortal=False), refuser(1, 1)),
        messages=2,
        gives_back=True,
        sets_aside=True,
    ),
    "levels": Play(
        replace(ROOMY, levels=2, slots=4),
        (level_producer(1, (0, 1)), consumer(), consumer()),
        messages=2,
        kills=1,
    ),
    "levels-returned": Play(
        replace(ROOMY, levels=1),
        (level_producer(1, (0,)), consumer(1), consumer()),
        messages=1,
        gives_back=True,
    ),
    "levels-give-back": Play(
        replace(ROOMY, levels=2),
        (level_producer(1, (0, 1)), consumer(1), consumer()),
        messages=2,
        kills=1,
        gives_back=True,
    ),
    "levels-recycle": Play(
        replace(ROOMY, levels=2),
        (level_producer(1, (0, 1, 0)), consumer(1)),
        messages=3,
        kills=1,
        gives_back=True,
    ),
    "levels-batch": Play(
        replace(ROOMY, levels=2),
        (level_producer(1, (0, 1)), batch_consumer(2), consumer()),
        messages=2,
        kills=1,
    ),
    "single": Play(
        SINGLE,
        (settled(1, 2), consumer(), consumer()),
        messages=2,
        kills=1,
        groups=(1, 1),
    ),
    "single-returned": Play(
        SINGLE,
        (settled(1, 2), consumer(1), consumer()),
        messages=2,
        kills=1,
        gives_back=True,
        groups=(1, 1),
    ),
    "single-stands-down": Play(
        SINGLE,
        (settled(1, 2), stander_down(), late_consumer()),
        messages=2,
        kills=1,
        groups=(1, 1),
    ),
    "single-outranked": Play(
        SINGLE,
        (settled(1, 2), late_consumer(), outranker(1)),
        messages=2,
        kills=1,
        groups=(1, 1),
    ),
    "single-threads": Play(
        replace(SINGLE, slots=2),
        (settled(1, 2), returner(owner=2), taker(0, 0, owner=2), taker(1, 1)),
        messages=2,
        gives_back=True,
        groups=(1, 1),
    ),
    "groups": Play(
        GROUPED,
        (group_producer(1, (1, 2), mortal=False), late_consumer(), consumer()),
        messages=2,
        kills=1,
        groups=(1, 2),
    ),
    "groups-returned": Play(
        GROUPED,
        (group_producer(1, (1, 0)), returner(), consumer()),
        messages=2,
        gives_back=True,
        groups=(1, 0),
    ),
    "latest": Play(
        KEYED,
        (key_producer(1, (1,)), key_producer(2, (1,))),
        messages=2,
        kills=1,
        drops=True,
        keys={1: (1,), 2: (1,)},
    ),
    "latest-taken": Play(
        KEYED,
        (key_producer(1, (1, 1)), consumer()),
        messages=2,
        kills=1,
        drops=True,
        keys={1: (1, 1)},
    ),
    "latest-recycled": Play(
        replace(KEYED, slots=2),
        (key_producer(1, (1, 1, 1)), consumer()),
        messages=3,
        drops=True,
        keys={1: (1, 1, 1)},
    ),
    "latest-returned": Play(
        KEYED,
        (key_producer(1, (1, 1)), Player(OTHER, keyed.returning)),
        messages=2,
        drops=True,
        gives_back=True,
        keys={1: (1, 1)},
    ),
    "latest-behind": Play(
        KEYED,
        (key_producer(1, (1, 1)), key_producer(2, (5,))),
        messages=3,
        drops=True,
        keys={1: (1, 1), 2: (5,)},
    ),
    "latest-old": Play(
        KEYED,
        (key_producer(1, (1,)), key_producer(2, (1 + keyed.RETURNED,))),
        messages=2,
        kills=1,
        drops=True,
        keys={1: (1,), 2: (1 + keyed.RETURNED,)},
    ),
    "latest-old-taken": Play(
        KEYED,
        (key_producer(1, (1, 1 + keyed.RETURNED)), Player(OTHER, keyed.returning)),
        messages=2,
        drops=True,
        gives_back=True,
        keys={1: (1, 1 + keyed.RETURNED)},
    ),
    "latest-old-carried": Play(
        KEYED,
        (key_producer(1, (1 + keyed.RETURNED, 1)), carrier(2)),
        messages=2,
        kills=1,
        drops=True,
        gives_back=True,
        keys={1: (1 + keyed.RETURNED, 1)},
    ),
    "latest-both-old-carried": Play(
        KEYED,
        (key_producer(1, (1 + keyed.RETURNED, 1 + keyed.RETURNED)), carrier(2)),
        messages=2,
        kills=1,
        drops=True,
        gives_back=True,
        keys={1: (1 + keyed.RETURNED, 1 + keyed.RETURNED)},
    ),
    "latest-found": Play(
        replace(KEYED, finds=True),
        (key_producer(1, (1, 1, 1)), Player(OTHER, keyed.finding, (1, 0))),
        messages=3,
        drops=True,
        keys={1: (1, 1, 1)},
    ),
    "latest-helped": Play(
        replace(KEYED, producers=1, transactions=True, finds=True),
        (
            Player(PRODUCER, keyed.committing_key, (1, 1), scan=0, owns=True),
            helper(0),
        ),
        messages=1,
        drops=True,
        transaction=1,
        writers={1: 1, 2: 1},
        keys={1: (1,)},
    ),
    "carry": Play(
        KEYED,
        (key_producer(1, (1, 1)), carrier(2)),
        messages=2,
        kills=1,
        drops=True,
        gives_back=True,
        keys={1: (1, 1)},
    ),
    "repairer": Play(
        ROOMY,
        (settled(1, 2), consumer(), repairer(1)),
        messages=2,
        kills=1,
    ),
    "leases": Play(
        ROOMY,
        (settled(1, 1), leaser(5), consumer(), repairer(1, late_ms=100, grace_ms=10)),
        messages=1,
        leases_end=True,
    ),
    "arena": Play(
        TIGHT,
        (producer(1, 5), consumer()),
        messages=5,
        kills=1,
    ),
    "arena-shared": Play(
        TIGHT,
        (producer(1, 2), producer(2, 1, mortal=False), consumer(mortal=False)),
        messages=3,
        kills=1,
    ),
    "heir": Play(
        replace(ROOMY, blocks=1),
        (
            Player(PRODUCER, processes.leaving, (1, 2)),
            Player(PRODUCER, processes.leaving, (2, 1), mortal=False),
            consumer(mortal=False),
        ),
        messages=3,
        kills=1,
    ),
    "loans": Play(
        replace(TIGHT, slots=4),
        (Player(PRODUCER, processes.lending, (1,)), consumer()),
        messages=3,
    ),
    "batches": Play(
        ROOMY,
        (batcher(1, 2), batch_consumer(2), consumer()),
        messages=2,
        kills=1,
    ),
    "batch-give-back": Play(
        ROOMY,
        (settled(1, 2), consumer(1), batch_consumer(2)),
        messages=2,
        kills=1,
        gives_back=True,
    ),
    "drop": Play(
        ROOMY,
        (Player(PRODUCER, processes.dropping, (1, 3), owns=True), consumer()),
        messages=3,
        drops=True,
    ),
    "broadcast": Play(
        replace(GATED, gates=2, flags=at.RING_BROADCAST),
        (settled(1, 3), follower(0), follower(1)),
        messages=3,
        drops=True,
        kills=1,
    ),
    "barrier": Play(
        replace(GATED, gates=1, barrier=1),
        (settled(1, 3), journal(), consumer()),
        messages=3,
        extra=0,
    ),
    "journal-adopted": Play(
        replace(GATED, gates=1),
        (settled(1, 2, mortal=False), consumer(mortal=False), journal(), journal_heir()),
        messages=2,
        kills=1,
    ),
    "replica-adopted": Play(
        replace(GATED, gates=1, named_gates=True),
        (settled(1, 1, mortal=False), consumer(mortal=False), replica(), replica_heir()),
        messages=1,
        kills=1,
    ),
    "successor": Play(
        replace(ROOMY, blocks=3, producers=1),
        (
            Player(PRODUCER, processes.producing_numbered, (1, 2, 77), scan=0, owns=True),
            Player(PRODUCER, processes.succeeding, (1, 2, 77, 0), scan=1, owns=True, mortal=False),
            consumer(mortal=False),
        ),
        messages=2,
        kills=1,
        numbered=True,
        writers={1: 1, 2: 1},
    ),
    "successor-buffered": Play(
        replace(ROOMY, blocks=3, producers=1),
        (
            Player(PRODUCER, processes.producing_numbered, (1, 2, 77), scan=0, owns=True),
            Player(PRODUCER, processes.succeeding, (1, 2, 77, 0), scan=1, owns=True, mortal=False),
            consumer(mortal=False),
        ),
        messages=2,
        kills=1,
        numbered=True,
        store_buffers=True,
        writers={1: 1, 2: 1},
    ),
    "batch-numbered": Play(
        replace(ROOMY, slots=4, base=4 * at.LAP_MASK, producers=1),
        (
            Player(PRODUCER, processes.producing_numbered, (1, 1, 77), scan=0, owns=True),
            batcher(2, 2),
            consumer(),
        ),
        messages=3,
        numbered=True,
    ),
    "successor-reuse": Play(
        replace(TIGHT, producers=1, chunk_role=SHARED),
        (
            Player(PRODUCER, processes.producing_numbered, (1, 2, 77), scan=0, owns=True),
            settled(2, 1),
            consumer(),
        ),
        messages=3,
        numbered=True,
    ),
    "pour": Play(
        replace(ROOMY, blocks=3, origins=1),
        (pourer(1, 2), pourer(2, 2, former=0, mortal=False), consumer(mortal=False)),
        messages=2,
        kills=1,
        writers={1: 1, 2: 1},
    ),
    "pour-buffered": Play(
        replace(ROOMY, blocks=3, origins=1),
        (pourer(1, 2), pourer(2, 2, former=0, mortal=False), consumer(mortal=False)),
        messages=2,
        kills=1,
        store_buffers=True,
        writers={1: 1, 2: 1},
    ),
    "pour-among-others": Play(
        replace(ROOMY, slots=4, base=4 * at.LAP_MASK, blocks=3, origins=1),
        (pourer(1, 2), settled(2, 1), consumer()),
        messages=3,
        kills=1,
    ),
    "pour-owned": Play(
        replace(ROOMY, blocks=3, origins=1),
        (
            pourer(1, 1, mortal=False),
            pourer(2, 1, mortal=False),
            repairer(1, mortal=False),
            consumer(mortal=False),
        ),
        messages=1,
        writers={1: 1, 2: 1},
    ),
    "pour-forgotten": Play(
        replace(ROOMY, blocks=3, origins=1),
        (
            pourer(1, 1, mortal=False),
            Player(OTHER, pouring.forgetting, (0,), mortal=False),
            Player(OTHER, once.helping, stoppable=True),
            consumer(mortal=False),
        ),
        messages=1,
    ),
    "retry": Play(
        replace(ROOMY, blocks=3, origins=2),
        (retrier(1, 2), retrier(2, 2, former=0, mortal=False), consumer(mortal=False)),
        messages=2,
        kills=1,
        writers={1: 1, 2: 1},
    ),
    "retry-buffered": Play(
        replace(ROOMY, blocks=3, origins=2),
        (retrier(1, 2), retrier(2, 2, former=0, mortal=False), consumer(mortal=False)),
        messages=2,
        kills=1,
        store_buffers=True,
        writers={1: 1, 2: 1},
    ),
    "retry-helped": Play(
        replace(ROOMY, slots=4, blocks=3, origins=2),
        (
            retrier(1, 4, mortal=False),
            Player(OTHER, once.helping, stoppable=True),
            consumer(mortal=False),
        ),
        messages=3,
        stops=1,
    ),
    "cursor": Play(
        replace(GATED, gates=1),
        (settled(1, 3, mortal=False), consumer(mortal=False), follower(0)),
        messages=3,
        kills=1,
    ),
    "cursor-buffered": Play(
        replace(GATED, gates=1),
        (settled(1, 2), consumer(), follower(0)),
        messages=2,
        store_buffers=True,
    ),
    "cursors": Play(
        replace(GATED, gates=2),
        (settled(1, 1), consumer(), follower(0), follower(1)),
        messages=1,
    ),
    "lossy": Play(
        replace(GATED, chunk_role=SHARED),
        (settled(1, 3), consumer(), glancer(WORN.base + 2)),
        messages=3,
        lossy=True,
    ),
    "lossy-late": Play(
        replace(GATED, chunk_role=SHARED),
        (settled(1, 2), consumer(), late_glancer(WORN.base + 2, FAR_BEHIND)),
        messages=2,
        lossy=True,
    ),
    "producer-late": Play(
        ROOMY,
        (late_producer(1, 1, FAR_BEHIND), settled(2, 1), consumer()),
        messages=2,
    ),
    "barrier-seen": Play(
        replace(GATED, gates=1, barrier=1, chunk_role=SHARED),
        (settled(1, 2), journal(), peerer(WORN.base + 1), glancer(WORN.base + 1)),
        messages=2,
        lossy=True,
        drops=True,
        extra=0,
    ),
    "transaction": Play(
        replace(ROOMY, producers=1, transactions=True),
        (
            committer(2),
            undertaker(0, 0),
            undertaker(0, 1, mortal=False),
            consumer(mortal=False),
        ),
        messages=2,
        kills=2,
        transaction=2,
        writers={1: 1, 2: 1, 3: 1},
    ),
    "transaction-helped": Play(
        replace(ROOMY, producers=1, transactions=True, slots=4),
        (committer(2), helper(0)),
        messages=2,
        transaction=2,
        writers={1: 1, 2: 1},
    ),
    "transaction-unplaced": Play(
        replace(
            ROOMY,
            producers=1,
            transactions=True,
            blocks=1,
            chunk_role=SHARED,
        ),
        (
            Player(PRODUCER, committing.committing_first, (1, 5), scan=0, owns=True, mortal=False),
            Player(PRODUCER, committing.keeping, (0,), mortal=False),
            consumer(mortal=False),
        ),
        messages=5,
        transaction=5,
        writers={1: 1},
    ),
    "transaction-ack": Play(
        replace(ROOMY, producers=1, transactions=True),
        (
            committer(1),
            settled(2, 1, mortal=False),
            undertaker(0, 0, mortal=False),
            consumer(mortal=False),
        ),
        messages=2,
        kills=1,
        gives_back=True,
        transaction=1,
        writers={1: 1, 3: 1},
    ),
    "once": Play(
        replace(ROOMY, once=True, ids=2, slots=4),
        (repeater(1, 3), repeater(2, 3)),
        messages=2,
        kills=2,
        retried=3,
    ),
    "once-returned": Play(
        replace(ROOMY, once=True, ids=1, slots=4),
        (repeater(1, 3, 3), once_consumer(1)),
        messages=2,
        kills=1,
        gives_back=True,
        retried=3,
    ),
    "once-recycled": Play(
        replace(ROOMY, once=True, ids=1, chunk_role=SHARED),
        (repeater(1, 3, 5, 5), once_consumer()),
        messages=3,
        retried=5,
    ),
    "once-helped": Play(
        replace(ROOMY, once=True, producers=1, noted=1),
        (repeater(1, 9, 9, 9), Player(OTHER, once.helping)),
        messages=3,
        retried=9,
    ),
    "once-followed": Play(
        replace(GATED, once=True, ids=1, gates=1, slots=4),
        (repeater(1, 3, 3), Player(CURSOR, once.following)),
        messages=2,
        kills=1,
        retried=3,
    ),
    "once-forgotten": Play(
        replace(ROOMY, once=True, ids=1, slots=4),
        (repeater(1, 3, 5), repeater(2, 3)),
        messages=3,
        kills=1,
        retried=3,
    ),
    "once-chained": Play(
        replace(ROOMY, once=True, ids=3, slots=4),
        (repeater(1, 3, 6), repeater(2, 6)),
        messages=3,
        kills=1,
        retried=3,
    ),
    "once-committed": Play(
        replace(ROOMY, once=True, ids=1, producers=1, slots=4),
        (Player(PRODUCER, once.placing, (1, 3), scan=0, owns=True), repeater(2, 3)),
        messages=2,
        retried=3,
    ),
    "once-numbered": Play(
        replace(ROOMY, once=True, producers=1, slots=4),
        (repeater(1, 9), repeater(2, 9)),
        messages=2,
        kills=2,
        retried=9,
    ),
    "bell": Play(
        ROOMY,
        (
            Player(PRODUCER, processes.ringing, (1, 2), scan=0, owns=True),
            Player(OTHER, processes.sleeping, (2,)),
        ),
        messages=2,
    ),
    "bell-buffered": Play(
        ROOMY,
        (
            Player(PRODUCER, processes.ringing, (1, 2), scan=0, owns=True),
            Player(OTHER, processes.sleeping, (2,)),
        ),
        messages=2,
        store_buffers=True,
    ),
}

DEEP: Final[dict[str, Play]] = {
    "aside-shared": Play(
        ROOMY,
        (settled(1, 2), refuser(1, 9), refuser(1, 9)),
        messages=2,
        kills=1,
        gives_back=True,
        sets_aside=True,
    ),
    "once-taken": Play(
        replace(ROOMY, once=True, ids=2),
        (repeater(1, 3), repeater(2, 3), once_consumer()),
        messages=2,
        kills=1,
        retried=3,
    ),
    "once-returned-deep": Play(
        replace(ROOMY, once=True, ids=1, slots=4),
        (repeater(1, 3, 3), once_consumer(1), once_consumer()),
        messages=2,
        gives_back=True,
        retried=3,
    ),
    "single-rebalanced": Play(
        replace(SINGLE, slots=2),
        (settled(1, 2), late_consumer(), late_consumer(), rebalancer(1)),
        messages=2,
        groups=(1, 1),
    ),
    "groups-deep": Play(
        GROUPED,
        (group_producer(1, (1, 2, 1)), consumer(), stander_down()),
        messages=3,
        kills=2,
        groups=(1, 2, 1),
    ),
    "groups-rebalanced": Play(
        GROUPED,
        (group_producer(1, (1, 1)), consumer(), consumer(), rebalancer(1)),
        messages=2,
        groups=(1, 1),
    ),
    "repairer-outrun": Play(
        ROOMY,
        (settled(1, 3), consumer(), repairer(1)),
        messages=3,
    ),
    "overtaken": Play(
        ROOMY,
        (settled(1, 3), consumer(), consumer()),
        messages=3,
    ),
    "exchange-deep": Play(
        ROOMY,
        (settled(1, 2), settled(2, 1), consumer(), consumer()),
        messages=3,
        kills=2,
        answers_max=2,
    ),
    "repairers-deep": Play(
        ROOMY,
        (settled(1, 1), consumer(), repairer(1), repairer(1)),
        messages=1,
        kills=2,
    ),
    "leases-deep": Play(
        ROOMY,
        (settled(1, 1), leaser(5), leaser(1000), repairer(2, late_ms=100, grace_ms=10)),
        messages=1,
        leases_end=True,
    ),
    "transaction-helped-deep": Play(
        replace(ROOMY, producers=1, transactions=True),
        (committer(2), helper(0), undertaker(0, 0, mortal=False), consumer(mortal=False)),
        messages=2,
        kills=1,
        transaction=2,
        writers={1: 1, 2: 1, 3: 1},
    ),
    "transaction-late": Play(
        replace(ROOMY, producers=1, transactions=True),
        (
            Player(PRODUCER, committing.committing_late, (1, 1, 5), scan=0, owns=True),
            settled(2, 1),
            repairer(1, late_ms=100, grace_ms=10),
            leaser(1000),
        ),
        messages=2,
        leases_end=True,
        transaction=1,
        writers={1: 1},
    ),
    "successor-deep": Play(
        replace(ROOMY, blocks=4, producers=1),
        (
            Player(PRODUCER, processes.producing_numbered, (1, 2, 77), scan=0, owns=True),
            Player(PRODUCER, processes.succeeding, (1, 2, 77, 0), scan=1, owns=True, mortal=False),
            consumer(),
            settled(4, 1),
        ),
        messages=3,
        kills=2,
        numbered=True,
        writers={1: 1, 2: 1, 4: 4},
    ),
    "arena-deep": Play(
        TIGHT,
        (producer(1, 2), producer(2, 1), consumer()),
        messages=3,
        kills=2,
    ),
    "cursors-deep": Play(
        replace(GATED, gates=2),
        (settled(1, 2), consumer(), follower(0), follower(1)),
        messages=2,
        kills=1,
    ),
    "latest-helped-late": Play(
        replace(
            KEYED,
            slots=2,
            producers=1,
            transactions=True,
            blocks=4,
            block_bytes=CHUNK_BYTES,
            chunk_role=SHARED,
        ),
        (
            Player(PRODUCER, keyed.committing_first_key, (1, 2, 0x21), scan=0, owns=True),
            helper(0),
            consumer(mortal=False),
        ),
        messages=2,
        drops=True,
        transaction=2,
        writers={1: 1, 2: 1},
        keys={1: (1, 2)},
    ),
    "latest-consumed": Play(
        KEYED,
        (key_producer(1, (1,)), key_producer(2, (5,)), consumer()),
        messages=2,
        drops=True,
        keys={1: (1,), 2: (5,)},
    ),
    "carry-taken": Play(
        KEYED,
        (key_producer(1, (1, 5)), carrier(2), consumer()),
        messages=2,
        drops=True,
        gives_back=True,
        keys={1: (1, 5)},
    ),
    "carry-again": Play(
        KEYED,
        (key_producer(1, (1, 1)), carrier(2, 2)),
        messages=2,
        drops=True,
        gives_back=True,
        keys={1: (1, 1)},
    ),
    "carry-found": Play(
        replace(KEYED, finds=True),
        (key_producer(1, (1, 1)), carrier(2), Player(OTHER, keyed.finding, (1, 0))),
        messages=2,
        drops=True,
        gives_back=True,
        keys={1: (1, 1)},
    ),
    "latest-repaired": Play(
        KEYED,
        (key_producer(1, (1,)), key_producer(2, (5,)), Player(OTHER, keyed.repairing)),
        messages=2,
        drops=True,
        keys={1: (1,), 2: (5,)},
    ),
}
"""For `make explore`.  The largest, exchange-deep, has 63 million states: half an hour, 11 GB."""

ALL_PLAYS: Final = {**PLAYS, **DEEP}

ELSEWHERE: Final[dict[str, Callable[[], Scenario]]] = {
    "schedule": lambda: schedule_scenario("schedule", 2, 2),
    "stripes": lambda: counting.stripes(times=2, kills=1),
    "paging": paging_scenario,
    "expiry": lambda: expiry_scenario("expiry"),
    "expiry-aside": lambda: expiry_scenario("expiry-aside", store_buffers=True, asides=True),
    "barrier-set": replica_dropped,
    "barrier-set-changed": set_changed,
    "barrier-set-adopted": mover_dead,
    "serves-again": broker_paused,
    "commit-gate": gate_scenario,
    "replica-moments": moments_scenario,
    "replica-reclaimed": replica_reclaimed_scenario,
    "deletion": lambda: deletion_scenario(store_buffers=False),
    "deletion-buffered": lambda: deletion_scenario(store_buffers=True),
    "deletion-committed": lambda: deletion_scenario(store_buffers=False, commits=True),
    "deletion-committed-buffered": lambda: deletion_scenario(store_buffers=True, commits=True),
    "balance": lambda: balancing.spread("balance", (2, 2), 7),
    "balance-ineligible": lambda: balancing.spread("balance-ineligible", (2, 2), 5),
    "balance-eligible": lambda: balancing.eligible_changed((2, 1)),
    "balance-none-eligible": lambda: balancing.members_changed("balance-none-eligible", (2,), 0),
    "balance-changed": lambda: balancing.members_changed("balance-changed", (1, 1), 2),
    "balance-changed-buffered": lambda: balancing.members_changed(
        "balance-changed-buffered", (1,), 2, store_buffers=True
    ),
    "balance-deleted": lambda: balancing.member_deleted((1, 1)),
    "balance-replaced": lambda: balancing.set_replaced((1, 1)),
    "balance-selectors": lambda: balancing.selectors_changed(),
    "follower": lambda: follower_scenario("follower", 2),
    "follower-buffered": lambda: follower_scenario("follower-buffered", 1, store_buffers=True),
}
"""Without a ring, each in a file of its own: movers look twice (serving.py)."""

SHORT: Final = (*PLAYS, *ELSEWHERE)
ALL: Final = (*ALL_PLAYS, *ELSEWHERE)


def scenario(name: str) -> Scenario:
    if name in ELSEWHERE:
        return ELSEWHERE[name]()
    if name not in ALL_PLAYS:
        raise ValueError(f"no scenario is called {name!r}; there are {', '.join(ALL)}")
    return staged(name, ALL_PLAYS[name])
