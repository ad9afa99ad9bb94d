"""Who is at an end of a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from shmbroker.netbridge.wire.words import Refusal, Role, Standing


class Prover(Protocol):
    def answer(self, challenge: bytes) -> bytes:
        """What only who knows the secret can say to this."""


class Verifier(Protocol):
    @property
    def challenge(self) -> bytes:
        """For the other end; new for each connection."""

    def check(self, proof: bytes) -> bool:
        """Whether this answers the challenge."""


class Admitter(Verifier, Protocol):
    """The verifier of the far end, which has many credentials."""

    def claim(self, user: str, role: Role) -> None:
        """Whom the near end says to be; before `check`."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Of a broker, or of a program, as its handshake tells it."""

    node: bytes
    incarnation: bytes
    name: str
    standing: Standing
    epoch: int
    history: int = 0
    """Another one whenever positions of its queues may be used twice; the far end sees it in the
    origins of streams only."""


NOBODY: Final = Identity(bytes(16), bytes(16), "", Standing.NONE, 0)
"""Before it is known who this broker is."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the near end asks for."""

    vhost: str
    link: str
    role: Role
    user: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Denied:
    refusal: Refusal
    detail: str
    live: str = ""
    """Where to try instead."""


class Gate(Protocol):
    """Of a broker that accepts applications at some times only."""

    def denies(self, vhost: str) -> Denied | None:
        """Asked about each link of role client, once it has proved who it is, and last of all."""

    def passive(self) -> Denied | None:
        """The same about each link of a message transfer agent; nothing becomes active by it."""


Place: TypeAlias = tuple[bytes, str, Role]
"""Of a link: node id and name, as it says itself, and its role, which it has proved: a program does
not take the place of a broker."""


@dataclass(frozen=True, slots=True)
class Service:
    """What the far end gives, at the moment of the handshake."""

    vhosts: frozenset[str]
    admitted: frozenset[Role]
    """By its acceptor."""
    served: frozenset[Role]
    """For which it is active now."""
    has_room: bool = True
    live: str = ""
    """Where the live is, if this one is passive."""
    epochs: Mapping[bytes, int] = field(default_factory=dict)
    """The highest epoch that was seen, by node id."""
    newest: Mapping[Place, tuple[bytes, int]] = field(default_factory=dict)
    """Of each link: incarnation and attempt of the connection that counts."""
    gate: Gate | None = None
    """It also decides which vhost applications may ask for."""
