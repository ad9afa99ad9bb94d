"""The table of a broker's links, in shared memory: written by the live, read also if that hangs.

    /dev/shm/shmbroker.VHOST.links
    head        magic, number of rows, bytes of a row, bytes of the text, the folder of the instance
    each row    changes: the texts that were shown; text number N is in place N & 1, the next one
                is written to the other place
                for each place the bytes of its text, and the text: JSON, of what changes with the
                state
                counters: words of 8 bytes, each written by itself
                the number of the histogram: another one for each that begins at 0
                the histogram of append -> confirm: counts, the overflow last

It is made as segments are: without a name, and named when it is whole.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc._native import ffi
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Damaged
from shmbroker.ipc.instance.beat import give_name
from shmbroker.ipc.latency.latency import Counts, Histogram, Range

MAGIC: Final = int.from_bytes(b"SBLINKS3", "little")
HEAD_BYTES: Final = 4096
FOLDER_AT: Final = 64
TEXT_AT: Final = 1024
TEXT_BYTES: Final = 3584
TEXTS: Final = 2
TEXTS_END: Final = TEXT_AT + TEXTS * TEXT_BYTES
COUNTERS_AT: Final = 8 * (1 + TEXTS)
TEXT_MAX: Final = 500
"""Characters of a value that is shown."""
RANGE: Final = Range(1_000, 3_600_000_000_000, 2)
"""From a microsecond to an hour."""
COUNTERS: Final = (
    "attempts",
    "losses",
    "messages",
    "bytes",
    "confirmed",
    "set_aside",
    "fetched",
    "returned",
    "unclaimed",
    "bindings",
    "dropped",
    "credit_stalls",
    "credit_messages",
    "credit_bytes",
)
NUMBER_AT: Final = COUNTERS_AT + 8 * len(COUNTERS)
assert NUMBER_AT + 8 <= TEXT_AT
APPEND_CONFIRM: Final = "append-confirm"
"""The kind of its histogram, in the spool."""


def row_bytes() -> int:
    return TEXTS_END + (8 * (RANGE.length + 1) + 4095 & -4096)


def path_of(vhost: str) -> Path:
    return Path(f"/dev/shm/shmbroker.{vhost}.links")


class Row:
    """Of one link; written by the network thread."""

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        self._words = memory.cast("q")
        self._counts = memory[TEXTS_END:].cast("q")

    def show(self, text: Mapping[str, object]) -> None:
        cut = {
            key: each[:TEXT_MAX] if isinstance(each, str) else each for key, each in text.items()
        }
        content = json.dumps(cut).encode()
        if len(content) > TEXT_BYTES:
            content = json.dumps({"name": cut.get("name", "")}).encode()
        number = self._words[0] + 1
        place = number % TEXTS
        at = TEXT_AT + place * TEXT_BYTES
        self.memory[at : at + len(content)] = content
        self._words[1 + place] = len(content)
        self._words[0] = number

    def begin(self) -> None:
        """To count, from 0."""
        self._words[NUMBER_AT // 8] = int.from_bytes(os.urandom(7), "little")

    def set(self, counter: str, value: int) -> None:
        self._words[COUNTERS_AT // 8 + COUNTERS.index(counter)] = value

    def add(self, counter: str, value: int = 1) -> None:
        self._words[COUNTERS_AT // 8 + COUNTERS.index(counter)] += value

    def count(self, bucket: int | None, messages: int) -> None:
        """None: it fits in no bucket."""
        self._counts[RANGE.length if bucket is None else bucket] += messages

    def inherit(self, former: Row) -> None:
        """The counts of before the table was made anew."""
        self.memory[COUNTERS_AT:TEXT_AT] = former.memory[COUNTERS_AT:TEXT_AT]
        self.memory[TEXTS_END:] = former.memory[TEXTS_END:]


class Table:
    """Of a live.  One with other links takes its place."""

    def __init__(
        self, vhost: str, folder: Path, names: Iterable[str], former: Mapping[str, Row]
    ) -> None:
        names = list(names)
        path, size = path_of(vhost), row_bytes()
        whole = HEAD_BYTES + size * len(names)
        file = os.open(path.parent, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, trust.PRIVATE_MODE)
        try:
            os.fchmod(file, trust.PRIVATE_MODE)
            os.posix_fallocate(file, 0, whole)
            memory = memoryview(mmap.mmap(file, whole))
            text = os.fsencode(folder)[: HEAD_BYTES - FOLDER_AT]
            memory[: 5 * 8].cast("q")[:] = memoryview(
                b"".join(
                    each.to_bytes(8, "little")
                    for each in (MAGIC, len(names), size, len(text), TEXT_BYTES)
                )
            ).cast("q")
            memory[FOLDER_AT : FOLDER_AT + len(text)] = text
            places = range(HEAD_BYTES, whole, size)
            self.rows = {
                name: Row(memory[at : at + size]) for name, at in zip(names, places, strict=True)
            }
            for name, row in self.rows.items():
                row.begin()
                if name in former:
                    row.inherit(former[name])
                row.show({"name": name, "state": "idle"})
            give_name(file, path)
        finally:
            os.close(file)


@dataclass(frozen=True, slots=True)
class Seen:
    """A row as it is read."""

    text: dict[str, Any]
    counters: dict[str, int]
    counts: Counts

    @property
    def histogram(self) -> Histogram:
        return self.counts.since(None)


@dataclass(frozen=True, slots=True)
class SeenTable:
    folder: Path
    rows: tuple[Seen, ...]


def read(vhost: str) -> SeenTable | None:
    """None if there is none: nobody has been live with links."""
    try:
        file = trust.opened(path_of(vhost), os.O_RDONLY, trust.LOOKED_AT)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(file).st_size
        if size < HEAD_BYTES:
            raise Damaged(f"{path_of(vhost)} is no table of links")
        memory = memoryview(mmap.mmap(file, size, prot=mmap.PROT_READ))
    finally:
        os.close(file)
    magic, rows, each, folder, _ = memory[: 5 * 8].cast("q")
    if magic != MAGIC or each != row_bytes() or size < HEAD_BYTES + rows * each:
        raise Damaged(f"{path_of(vhost)} is no table of links of this version")
    return SeenTable(
        Path(os.fsdecode(bytes(memory[FOLDER_AT : FOLDER_AT + folder]))),
        tuple(
            _seen(memory[at : at + each])
            for at in range(HEAD_BYTES, HEAD_BYTES + rows * each, each)
        ),
    )


def _seen(row: memoryview) -> Seen:
    words = row.cast("q")
    first = COUNTERS_AT // 8
    values = ffi.new("int64_t[]", list(row[TEXTS_END:].cast("q")[: RANGE.length + 1]))
    return Seen(
        _text(row, words),
        dict(zip(COUNTERS, words[first : first + len(COUNTERS)], strict=True)),
        Counts(RANGE, words[NUMBER_AT // 8], values),
    )


def counted(table: SeenTable) -> dict[str, dict[str, Counts]]:
    """By the queue that is shipped."""
    return {
        str(row.text.get("queue") or row.text.get("name", "")): {APPEND_CONFIRM: row.counts}
        for row in table.rows
    }


def _text(row: memoryview, words: memoryview) -> dict[str, Any]:
    """The last one that is whole, also while the next one is written or if its writer died.

    Text N stays as it is until N + 1 was shown: whoever finds N before and after has read N.
    """
    while True:
        number = words[0]
        place = number % TEXTS
        at = TEXT_AT + place * TEXT_BYTES
        content = bytes(row[at : at + words[1 + place]])
        if number == words[0]:
            found: dict[str, Any] = json.loads(content)
            return found
