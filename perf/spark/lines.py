"""The regular lines of a log, taken apart by `lines.c`, and others that Python took apart."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shmbroker.perf.spark._native import ffi, lib

ROOM = 4096


class Lines:
    """Some of one text, as columns; row i's histogram is deflated, or was known when it came."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.known: dict[int, bytes] = {}
        self.known_bytes = 0
        self._at = np.empty(ROOM, np.int64)
        self._start, self._end = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        self._deflated_at, self._deflated_end = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        self._tag_ends = np.zeros(ROOM + 1, np.int32)
        self._tags, self._raw = np.empty(len(text), np.uint8), np.empty(len(text), np.uint8)
        self._all = ffi.new("struct sb_lines *")
        self._all.room = ROOM
        self._text = ffi.from_buffer("uint8_t[]", text)
        columns = ["at", "start", "end", "deflated_at", "deflated_end", "tag_ends", "tags", "raw"]
        for name in columns:
            setattr(
                self._all,
                name,
                ffi.from_buffer(f"{KINDS.get(name, 'int64_t')}[]", getattr(self, f"_{name}")),
            )

    def __len__(self) -> int:
        return int(self._all.count)

    @property
    def is_full(self) -> bool:
        return len(self) == ROOM

    def scan(self, at: int, base: int) -> int:
        """Take regular lines from there on, while there is room; where the first other one begins.

        `base` is added to all times: nanoseconds.
        """
        return int(lib.sb_scan(self._text, at, len(self.text), base, self._all))

    def put(self, at: int, tag: bytes, start: int, end: int, payload: bytes) -> None:
        """One that was not regular, but good."""
        row = len(self)
        begin = int(self._tag_ends[row])
        self._tags[begin : begin + len(tag)] = np.frombuffer(tag, np.uint8)
        self._tag_ends[row + 1] = begin + len(tag)
        self._at[row], self._start[row], self._end[row] = at, start, end
        self._deflated_at[row] = self._deflated_end[row] = self._deflated_end[row - 1] if row else 0
        self.known[row] = payload
        self.known_bytes += len(payload)
        self._all.count += 1

    def clear(self) -> None:
        self._all.count = self.known_bytes = 0
        self.known.clear()

    @property
    def at(self) -> np.ndarray:
        return self._at[: len(self)]

    @property
    def start(self) -> np.ndarray:
        return self._start[: len(self)]

    @property
    def end(self) -> np.ndarray:
        return self._end[: len(self)]

    @property
    def deflated(self) -> list[bytes]:
        ends = self._deflated_end[: len(self)].tolist()
        raw = self._raw[: ends[-1] if ends else 0].tobytes()
        begins = self._deflated_at[: len(self)].tolist()
        return [raw[begin:end] for begin, end in zip(begins, ends, strict=True)]

    @property
    def tags(self) -> pa.DictionaryArray:
        """As bytes."""
        buffers = [None, pa.py_buffer(self._tag_ends), pa.py_buffer(self._tags)]
        return pa.Array.from_buffers(pa.binary(), len(self), buffers).dictionary_encode()


KINDS = {"tag_ends": "int32_t", "tags": "uint8_t", "raw": "uint8_t"}
