"""CRC-32C, as files of the journal and of pages have it."""

from __future__ import annotations

from struct import Struct
from typing import Final

from shmbroker.ipc._native import ffi, lib

CRC: Final = Struct("<L")


def checksum(data: bytes, crc: int = 0) -> int:
    held = ffi.from_buffer(data)
    found: int = lib.sb_system_checksum(crc, int(ffi.cast("intptr_t", held)), len(data))
    return found
