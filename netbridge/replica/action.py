"""What the machines of replication have carried out."""

from __future__ import annotations

from typing import TypeAlias

from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.value import value


@value
class Say:
    frame: Frame


# --- of the live ------------------------------------------------------------------------------


@value
class Look:
    """Find one of these places in the files; answer by `found`."""

    places: tuple[Place, ...]


@value
class ReadFiles:
    """The next frames out of the files; answer by `read` or `gone`."""


@value
class Attach:
    """An end of the journal behind this frame; answer by `attached`."""

    after: int


@value
class Count:
    """Its end counts from now on; answer by `counts`."""


@value
class Done:
    """Its end is done with all frames up to this one."""

    number: int


@value
class Drop:
    """It does not count any more; the connection ends."""

    why: str


# --- of a replica -----------------------------------------------------------------------------


@value
class Discard:
    """What it has is set aside: all comes anew."""


@value
class GoOn:
    """Behind what it has, whose last frame the live calls so."""

    place: Place


@value
class Apply:
    """These frames, which nobody else has; tell by `reached` how far it is."""

    frames: bytes | bytearray


@value
class Became:
    state: str


Action: TypeAlias = (
    Say | Look | ReadFiles | Attach | Count | Done | Drop | Discard | GoOn | Apply | Became
)
