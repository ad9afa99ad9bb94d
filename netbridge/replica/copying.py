"""A replica's side: which frames it asks for, what comes, and when it is in sync.

    AWAY     --the link is up-->    JOINING
    JOINING  --joined-->            SYNCING   (what it has is set aside, unless it goes on with it)
    SYNCING  --in sync-->           IN_SYNC
    any      --the link is lost-->  AWAY

It decides nothing of messages: what is retired, replaced or moved comes as records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain

from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.replica.action import Action, Apply, Became, Discard, GoOn, Say
from shmbroker.netbridge.wire.frame import (
    Frame,
    InSync,
    Join,
    Joined,
    Reached,
    Shipment,
    Unjoined,
)
from shmbroker.netbridge.wire.words import ReplicaAck

Steps = Iterator[Action]
SHIPMENT_MAX = 5 << 30
"""Bytes: a frame has one message of 2 GiB at most, and a transaction may have more of them."""
NOWHERE = Place(0, 0, 0, 0)


class State(Enum):
    AWAY = "away"
    JOINING = "joining"
    WAITING = "waiting"
    SYNCING = "syncing"
    IN_SYNC = "in sync"


class Unexpected(Exception):
    """The live says what it cannot say: the link ends."""


class Copying:
    def __init__(self, name: str, boot: bytes, ack: ReplicaAck) -> None:
        self.name, self.boot, self.ack = name, boot, ack
        self.state = State.AWAY
        self.was_in_sync = False
        """When the link was lost, and it has lost nothing since."""
        self.why = ""
        """Of waiting."""
        self.counts_from = 0
        self.has = 0
        self.size = self.came = 0
        """Bytes that were said to come first, and that have come."""
        self._parts = bytearray()

    # --- the link -----------------------------------------------------------------------------

    def up(self, place: Place | None, own: Place | None) -> Steps:
        """The last frame that it follows, and the same or a later one in its own journal."""
        last, ours = place or NOWHERE, own or NOWHERE
        self.state = State.JOINING
        self._parts.clear()
        yield Became(self.state.value)
        yield Say(
            Join(
                self.name, self.boot, self.ack,
                last.number, last.epoch, last.seal, last.chain,
                ours.number, ours.epoch, ours.seal, ours.chain,
            )
        )  # fmt: skip

    def lost(self) -> Steps:
        if self.state is not State.AWAY:
            self.was_in_sync = self.state is State.IN_SYNC or (
                self.was_in_sync and self.state in (State.JOINING, State.WAITING)
            )
            self.state = State.AWAY
            self._parts.clear()
            yield Became(self.state.value)

    # --- what the live says -------------------------------------------------------------------

    def heard(self, frame: Frame) -> Iterable[Action]:
        if isinstance(frame, Shipment) and self.state in FLOWING:
            return self._shipped(frame)
        if isinstance(frame, Joined) and self.state is State.JOINING:
            return self._joined(frame)
        if isinstance(frame, Unjoined) and self.state is State.JOINING:
            self.state, self.why = State.WAITING, frame.reason
            return (Became(self.state.value),)
        if isinstance(frame, InSync) and self.state is State.SYNCING:
            self.counts_from = frame.number
            return self._in_sync()
        raise Unexpected(f"{type(frame).__name__} while {self.state.value}")

    def _joined(self, said: Joined) -> Steps:
        self.state = State.SYNCING
        self.was_in_sync = False
        self.counts_from = 0
        self.has = said.number
        self.size, self.came = said.size, 0
        if said.resumes:
            yield GoOn(Place(said.number, said.epoch, said.seal, said.chain))
        else:
            yield Discard()
        yield Became(self.state.value)

    def _shipped(self, said: Shipment) -> Iterable[Action]:
        if len(self._parts) + len(said.body) > SHIPMENT_MAX:
            raise Unexpected("a shipment is too large")
        self.came += len(said.body)
        if not said.more and not self._parts:
            return (Apply(bytes(said.body)),)
        self._parts += said.body
        if said.more:
            return ()
        whole, self._parts = self._parts, bytearray()
        return (Apply(whole),)

    # --- how far it is ------------------------------------------------------------------------

    def reached(self, number: int) -> Iterable[Action]:
        """All frames up to this one are where they must be for its word."""
        if self.state not in FLOWING or number <= self.has:
            return ()
        self.has = number
        said = Say(Reached(number))
        return (said,) if self.state is State.IN_SYNC else chain((said,), self._in_sync())

    def _in_sync(self) -> Steps:
        """It was told that confirms wait for it, and has what was there before."""
        if self.state is State.SYNCING and 0 < self.counts_from <= self.has:
            self.state = State.IN_SYNC
            yield Became(self.state.value)

    @property
    def percent(self) -> int | None:
        """Of a sync; None: it is short, or there is none."""
        if self.state is not State.SYNCING or not self.size:
            return None
        return min(99, self.came * 100 // self.size)

    @property
    def may_take_over(self) -> bool:
        """It has every frame that was confirmed by then: whether it may is for others to say."""
        return self.state is State.IN_SYNC or (
            self.was_in_sync and self.state in (State.AWAY, State.JOINING, State.WAITING)
        )


FLOWING = (State.SYNCING, State.IN_SYNC)
