"""What the machines of replication have carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.wire.frame import Frame


@dataclass(frozen=True, slots=True)
class Say:
    frame: Frame


# --- of the live ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Look:
    """Find one of these places in the files; answer by `found`."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """The next frames out of the files; answer by `read` or `gone`."""


@dataclass(frozen=True, slots=True)
class Attach:
    """An end of the journal behind this frame; answer by `attached`."""

    after: int


@dataclass(frozen=True, slots=True)
class Count:
    """Its end counts from now on; answer by `counts`."""


@dataclass(frozen=True, slots=True)
class Done:
    """Its end is done with all frames up to this one."""

    number: int


@dataclass(frozen=True, slots=True)
class Drop:
    """It does not count any more; the connection ends."""

    why: str


# --- of a replica -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Discard:
    """What it has is set aside: all comes anew."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """Behind what it has, whose last frame the live calls so."""

    place: Place


@dataclass(frozen=True, slots=True)
class Apply:
    """These frames, which nobody else has; tell by `reached` how far it is."""

    frames: bytes | bytearray


@dataclass(frozen=True, slots=True)
class Became:
    state: str


Action: TypeAlias = (
    Say | Look | ReadFiles | Attach | Count | Done | Drop | Discard | GoOn | Apply | Became
)
