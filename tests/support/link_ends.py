"""Two ends of a link in one process, without a network: what one says the other hears at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeVar

from shmbroker.netbridge.link.action import Action, Ended, Send
from shmbroker.netbridge.link.ending import Ending
from shmbroker.netbridge.link.handshake import Far, Near
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.outflow import Outlet
from shmbroker.netbridge.link.peer import Identity, Service, Wish
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire.codec import decode, encode
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import Level, Role, Standing, TargetKind

Kind = TypeVar("Kind")
DAY_MS = 1_800_000_000_000
TIMES = LinkTimes()


@dataclass(frozen=True, slots=True)
class Secret:
    """Prover and verifier of who knows a word."""

    word: bytes
    challenge: bytes

    def answer(self, challenge: bytes) -> bytes:
        return blake2b(challenge, key=self.word).digest()

    def claim(self, user: str, role: Role) -> None:
        """There is one secret for all."""

    def check(self, proof: bytes) -> bool:
        return proof == self.answer(self.challenge)


EAST = Identity(b"E" * 16, b"e" * 16, "east", Standing.LIVE, 3)
WEST = Identity(b"W" * 16, b"w" * 16, "west", Standing.LIVE, 5)
WISH = Wish("/", "east-west", Role.CLUSTER)
EVERYTHING = frozenset(Role)
SERVICE = Service(frozenset({"/"}), EVERYTHING, EVERYTHING)
OUTLET = Outlet(
    target=0,
    kind=TargetKind.QUEUE,
    name="q",
    origin=b"o" * 16,
    level=Level.DISK,
    confirmed=0,
    released=0,
    sent=0,
    end=0,
)


def record(length: int) -> bytes:
    """So many bytes, which nobody looks at."""
    return bytes(length)


@dataclass
class Pair:
    near: Machine
    far: Machine
    now: float = 0.0
    near_did: list[Action] = field(default_factory=list)
    far_did: list[Action] = field(default_factory=list)
    day_ms: int = DAY_MS
    """Of the near end."""

    def hears(self, end: Machine, actions: Iterable[Action]) -> None:
        """Note what this end does; what it sends reaches the other one, and so on."""
        other = self.far if end is self.near else self.near
        for action in actions:
            (self.near_did if end is self.near else self.far_did).append(action)
            if isinstance(action, Send):
                message = encode(action.frame, action.number)
                number, frame = decode(message, TIMES.max_frame_size)
                day_ms = self.day_ms if other is self.near else DAY_MS
                self.hears(other, other.received(number, frame, self.now, day_ms))

    def connect(self) -> Pair:
        self.hears(self.far, self.far.connected(self.now))
        self.hears(self.near, self.near.connected(self.now))
        return self

    def opened(
        self, outlet: Outlet = OUTLET, mark: int = 0, confirmed: int = 0, largest: int = 1 << 30
    ) -> Pair:
        """Up, with a target that the near end ships to."""
        self.near.open(outlet, self.now)
        self.connect()
        self.hears(self.far, self.far.opened(0, mark, confirmed, largest, self.now))
        return self

    def turn(self) -> None:
        self.hears(self.near, self.near.turn(self.now))

    def settle(self) -> None:
        """Confirms of a few messages are told a moment later."""
        self.now = self.far.deadline
        self.hears(self.far, self.far.tick(self.now))

    def of(self, kind: type[Kind], end: str = "near") -> list[Kind]:
        did = self.near_did if end == "near" else self.far_did
        return [each for each in did if isinstance(each, kind)]

    def sent(self, kind: type[Frame], end: str = "near") -> list[Any]:
        return [each.frame for each in self.of(Send, end) if isinstance(each.frame, kind)]

    def endings(self) -> tuple[list[Ending], list[Ending]]:
        near = [each.ending for each in self.of(Ended, "near")]
        return near, [each.ending for each in self.of(Ended, "far")]


def pair(
    *,
    times: LinkTimes = TIMES,
    far_times: LinkTimes | None = None,
    ours: Identity = EAST,
    theirs: Identity = WEST,
    wish: Wish = WISH,
    service: Service = SERVICE,
    near_word: bytes = b"word",
    far_word: bytes = b"word",
    epochs_seen: Mapping[bytes, int] | None = None,
    **of_service: Any,
) -> Pair:
    near = Secret(near_word, b"n" * 16)
    far = Secret(far_word, b"f" * 16)
    service = replace(service, **of_service)
    return Pair(
        Machine(times, Near(ours, wish, near, near, epochs_seen), 0.0),
        Machine(far_times or times, Far(theirs, service, far, far), 0.0),
    )
