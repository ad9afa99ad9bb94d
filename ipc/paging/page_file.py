"""A page file, 0123456789abcdef.page: what it is called, and how it begins.

header of 64 bytes | record | record | ...
record: head of 32 bytes, as in the journal | chunk | zeros up to a multiple of 8
"""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from shmbroker.core.layout import (
    POSITION_MASK,
    RECORD_HEAD_BYTES,
    RECORD_IS_MESSAGE,
    RECORD_KIND_SHIFT,
)
from shmbroker.ipc._native import lib
from shmbroker.ipc.doctor.stale import boot_hash
from shmbroker.ipc.journal.checksum import CRC, checksum
from shmbroker.ipc.journal.stored import HEAD

MAGIC: Final = 0x6567617062687300  # \0shbpage
VERSION: Final = 1
NAME: Final = re.compile(r"([0-9a-f]{16})\.page")
SERIAL_MAX: Final = (1 << 62) - 1
LAYOUT: Final = Struct("<QLLqQqqqLL")
"""Magic, version, zero, serial, salt, epoch of the broker that wrote it, in which boot, how far the
time of day was ahead of its clock, zeros, and the CRC of all before: the seed of the records."""
HEADER_BYTES: Final = LAYOUT.size
PLACE: Final = Struct("<q")

assert HEADER_BYTES == 64, "a header's size is a multiple of a record's unit"


def ahead_ns() -> int:
    """How far the time of day is ahead of the clock of this boot: expiry is by that."""
    clock: int = lib.sb_system_clock()
    return time.time_ns() - clock


def name_of(serial: int) -> str:
    return f"{serial:016x}.page"


def serial_of(name: str) -> int:
    """0: it is none."""
    found = NAME.fullmatch(name)
    serial = int(found[1], 16) if found else 0
    return serial if serial <= SERIAL_MAX else 0


@dataclass(frozen=True, slots=True)
class Header:
    serial: int
    epoch: int
    boot: int
    ahead: int
    crc: int = 0

    @classmethod
    def of_now(cls, serial: int, epoch: int) -> Self:
        return cls(serial, epoch, boot_hash(), ahead_ns())

    @classmethod
    def read(cls, data: bytes, serial: int) -> Self | None:
        """None: it does not check, in a file of this name."""
        magic, version, _, number, _, epoch, boot, ahead, _, crc = LAYOUT.unpack(data)
        is_ours = (magic, version, number) == (MAGIC, VERSION, serial)
        if not is_ours or crc != checksum(data[: -CRC.size]):
            return None
        return cls(serial, epoch, boot, ahead, crc)

    def __bytes__(self) -> bytes:
        salt = secrets.randbits(64)
        parts = (MAGIC, VERSION, 0, self.serial, salt, self.epoch, self.boot, self.ahead, 0, 0)
        data = LAYOUT.pack(*parts)[: -CRC.size]
        return data + CRC.pack(checksum(data))

    @property
    def later(self) -> int:
        """What is added to times of expiry, which are by the clock of that boot."""
        return 0 if self.boot == boot_hash() else self.ahead - ahead_ns()


def seed_of(header: bytes) -> int:
    seed: int = CRC.unpack(header[-CRC.size :])[0]
    return seed


@dataclass(frozen=True, slots=True)
class Head:
    """Of a record."""

    is_message: bool
    """Else all below its position is done with: it was purged."""
    position: int

    @classmethod
    def of(cls, data: bytes) -> Self:
        where = HEAD.unpack(data)[-1]
        kind = where >> RECORD_KIND_SHIFT
        return cls(kind == RECORD_IS_MESSAGE, where & POSITION_MASK)

    @classmethod
    def first(cls, data: bytes, serial: int) -> Self | None:
        """That of a file which begins so: None if it has none that can be read."""
        if len(data) < HEADER_BYTES + RECORD_HEAD_BYTES:
            return None
        header = Header.read(data[:HEADER_BYTES], serial)
        head = data[HEADER_BYTES:]
        covered = PLACE.pack(HEADER_BYTES) + bytes(CRC.size) + head[CRC.size :]
        if header is None or CRC.unpack_from(head)[0] != checksum(covered, header.crc):
            return None
        return cls.of(head)


def purged(position: int) -> bytes:
    """A record that says so, to be completed for its place."""
    return HEAD.pack(0, 0, 0, 0, 0, position | lib.SB_RECORD_RETIRED << RECORD_KIND_SHIFT)
