"""What each incarnation did, in a file of its own that survives its death.

A record is written with one write() and never lies across two pages, so a kill leaves whole
records only.  What was confirmed is noted after the confirmation, and an acknowledgement before and
after it: a kill in between leaves one message of which we do not know.

     0      1            2       4        8          16       24
    +------+------------+-------+--------+----------+--------+----------+
    | kind | deliveries | queue | length | identity | number | position |
    +------+------------+-------+--------+----------+--------+----------+
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct

import numpy as np
import numpy.typing as npt

CONFIRMED, GOT, ACKING, ACKED, DAMAGED, GAVE = range(1, 7)
"""ACKING: about to be acknowledged.  DAMAGED: received, and its content is not what was published.
GAVE: given back."""

NOWHERE = -1
"""The position of a message whose publish did not tell."""

RECORD = Struct("<BBHIQQq")
DTYPE = np.dtype(
    [
        ("kind", "u1"),
        ("deliveries", "u1"),
        ("queue", "<u2"),
        ("length", "<u4"),
        ("identity", "<u8"),
        ("number", "<u8"),
        ("position", "<i8"),
    ]
)
Records = npt.NDArray[np.void]

assert DTYPE.itemsize == RECORD.size == 32


class Journal:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note(
        self,
        kind: int,
        queue: int,
        identity: int,
        number: int,
        position: int = NOWHERE,
        deliveries: int = 0,
        length: int = 0,
    ) -> None:
        record = RECORD.pack(kind, deliveries, queue, length, identity, number, position)
        os.write(self._file, record)

    def confirmed_many(self, queue: int, identity: int, first: int, count: int) -> None:
        os.write(
            self._file,
            b"".join(
                RECORD.pack(CONFIRMED, 0, queue, 0, identity, number, NOWHERE)
                for number in range(first, first + count)
            ),
        )

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> Records:
    """All records of one incarnation, in order."""
    data = path.read_bytes() if path.exists() else b""
    assert len(data) % RECORD.size == 0, f"{path} ends in half a record"
    return np.frombuffer(data, DTYPE)
