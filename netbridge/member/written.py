"""What a member's journal says of the node: one record that says all, and each newer one replaces.

It is written when a member begins an epoch, when the in-sync list changes, when a live hands over
or parks, and when it votes for members of other nodes.  Each segment of a journal begins with the
one that holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Copy, Node
from shmbroker.netbridge.member.standing import (
    Began,
    Copies,
    HandedOver,
    Parked,
    Position,
    Record,
    Voted,
)

NUMBER_BITS = 64
SEAL_BITS = 32


@dataclass(frozen=True, slots=True)
class Written:
    serial: int = 0
    """It counts up within an epoch, so that one that is repeated is known as such."""
    epoch: int = 0
    holder: str = ""
    copies: tuple[Copy, ...] = ()
    is_forced: bool = False
    handed_to: str = ""
    is_parked: bool = False
    all_know: bool = False
    """Of `Parked`."""
    ledgers: tuple[tuple[Node, Ledger], ...] = ()
    """Of other nodes of its cluster: whoever serves this one knows what was granted."""

    @property
    def age(self) -> tuple[int, int]:
        return self.epoch, self.serial

    def after(self, record: Record) -> Written:
        serial = self.serial + 1
        if isinstance(record, Began):
            return Written(
                1, record.epoch, record.holder, record.copies, record.is_forced,
                ledgers=self.ledgers,
            )  # fmt: skip
        if isinstance(record, Copies):
            return replace(self, serial=serial, copies=record.copies)
        if isinstance(record, HandedOver):
            return replace(self, serial=serial, handed_to=record.to)
        if isinstance(record, Voted):
            return replace(self, serial=serial, ledgers=record.ledgers)
        return replace(self, serial=serial, is_parked=True, all_know=record.all_know)

    @property
    def records(self) -> tuple[Record, ...]:
        """That say the same."""
        began = Began(self.epoch, self.holder, self.copies, self.is_forced)
        if self.handed_to:
            return began, HandedOver(self.handed_to)
        return (began, Parked(self.all_know)) if self.is_parked else (began,)


# --- frames, as they are named to members ------------------------------------------------------


def number_of(epoch: int, number: int) -> int:
    """Of a frame: it rises through all epochs, though each live counts its frames by itself."""
    return epoch << NUMBER_BITS | number


def in_epoch(number: int) -> int:
    """Of a frame, as its live counts."""
    return number & ((1 << NUMBER_BITS) - 1)


def position_of(place: Place | None, written: Written) -> Position:
    """Of a frame that was written while that held."""
    if place is None:
        return Position()
    chain = place.epoch << 2 * SEAL_BITS | place.seal << SEAL_BITS | place.chain
    return Position(written.epoch, written.holder, number_of(written.epoch, place.number), chain)


class OwnFrames:
    """Of a live, by the numbers of its journal.  One of before its epoch comes first."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._epoch = self._began_at = 0

    def begin(self, epoch: int, number: int) -> None:
        """By this frame, when that is synced: until then all are of the epoch before."""
        self._epoch, self._began_at = epoch, number

    def position(self, number: int) -> Position:
        epoch = self._epoch if number >= self._began_at else 0
        return Position(self._epoch, self._me, number_of(epoch, number), 0)


def place_of(position: Position) -> Place:
    low = (1 << SEAL_BITS) - 1
    chain = position.chain
    number = in_epoch(position.number)
    return Place(number, chain >> 2 * SEAL_BITS, chain >> SEAL_BITS & low, chain & low)
