"""What is explored: every scenario by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from shmbroker.core import layout as at
from tests.explore import processes
from tests.explore.invariants import EPILOGUE_OWNER, Cast, RingRules
from tests.explore.ring import Geometry, RingMemory, first_words, port_opening, ring_set_up
from tests.explore.scenario import Role, Scenario

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
CURSOR: Final = "cursor"
OTHER: Final = "other"

WORN: Final = Geometry(
    base=2 * at.LAP_MASK - 2 + 2,
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
    lossy: bool = False
    numbered: bool = False
    writers: dict[int, int] = field(default_factory=dict)


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

    def opening(owner: int, scan: int) -> tuple[int, ...]:
        return geometry.slots, geometry.blocks, geometry.block_bytes, owner, scan

    return Scenario(
        name=name,
        memory=memory,
        setup=ring_set_up,
        setup_arguments=(geometry.blocks,),
        roles=tuple(
            Role(
                name=each,
                program=player.program,
                arguments=player.arguments,
                opening=port_opening,
                opening_arguments=opening(i + 1, player.scan),
                mortal=player.mortal,
                stoppable=player.stoppable,
            )
            for i, (player, each) in enumerate(zip(players, _names(players), strict=True))
        ),
        epilogue=Role(
            name="survivor",
            program=processes.surviving,
            arguments=(EPILOGUE_OWNER, play.extra),
            opening=port_opening,
            opening_arguments=opening(EPILOGUE_OWNER, 0),
        ),
        rules=RingRules(
            geometry,
            memory,
            Cast(
                owners=tuple(i + 1 for i in range(len(players))),
                producers=part(PRODUCER),
                consumers=part(CONSUMER),
                cursors=part(CURSOR),
                leases_end=play.leases_end,
                gives_back=play.gives_back,
                lossy=play.lossy,
                numbered=play.numbered,
                expected=play.messages,
                writers=play.writers,
            ),
        ),
        watched=tuple(memory.slots),
        kills=play.kills,
        stops=play.stops,
        store_buffers=play.store_buffers,
        answers_max=play.answers_max,
        poke=first_words(geometry),
    )


def producer(owner: int, last: int, scan: int = 0, **more: bool) -> Player:
    return Player(PRODUCER, processes.producing, (owner, 1, last), scan=scan, **more)


def consumer(gives: int = 0, **more: bool) -> Player:
    return Player(CONSUMER, processes.consuming, (gives,), **more)


ROOMY: Final = Geometry(blocks=4, block_bytes=4 * 64, gates=0)
"""Blocks enough that each producer stays in its first."""
WORN_ROOMY: Final = replace(WORN, blocks=4, block_bytes=4 * 64, gates=0)

PLAYS: Final[dict[str, Play]] = {
    "pair": Play(ROOMY, (producer(1, 3), consumer()), messages=3, kills=1),
    "exchange": Play(
        WORN_ROOMY,
        (producer(1, 2), producer(2, 1, scan=1), consumer(), consumer()),
        messages=3,
    ),
}


def scenario(name: str) -> Scenario:
    if name not in PLAYS:
        raise ValueError(f"no scenario is called {name!r}; there are {', '.join(PLAYS)}")
    return staged(name, PLAYS[name])
