"""The checksum of a record's body, computed here again."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

from shmbroker.ipc.journal.journal import Journal

POLYNOMIAL = 0x82F63B78
SEGMENT_HEADER_BYTES = 4096
HEAD = struct.Struct("<4L2Q")
LENGTHS = (*range(1, 400, 3), 1000, 1024, 6111, 6112, 6144, 6200, 20_000)


def checksum_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


def crc32c(content: bytes, table: list[int]) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def test_it_is_the_crc_32c_of_what_is_in_the_record(tmp_path: Path) -> None:
    """Of lengths that are dealt with in one, three and many parts."""
    random, table = Random(1), checksum_table()
    bodies = [random.randbytes(length) for length in LENGTHS]
    with Journal(tmp_path) as journal:
        for position, body in enumerate(bodies):
            journal.message(1, position, body)
        journal.commit()
    (path,) = tmp_path.glob("*.journal")
    content = path.read_bytes()
    at = SEGMENT_HEADER_BYTES + HEAD.size  # behind the record that begins the segment
    for body in bodies:
        _crc, body_crc, length, _frame, _queue, _where = HEAD.unpack_from(content, at)
        at += HEAD.size
        padded = body + bytes(-length % 8)
        assert content[at : at + len(padded)] == padded
        assert body_crc == crc32c(padded, table), length
        at += len(padded)
