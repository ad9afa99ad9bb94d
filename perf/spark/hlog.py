"""HdrHistogram's log, versions 1.0 to 1.3, read a few thousand lines at a time.

    #[StartTime: 1763740800.000000 (seconds since epoch), ...]
    #[shmbroker spool 1 host=a vhost=default build=0.1.0]
    #[overflow Tag=orders;publish-take count=3]
    Tag=orders;publish-take,0.000000,10.000000,1.5,HISTFAAAA...

A line's payload is base64 of zlib of a header and the counts from index 0 on: each a zigzag
LEB128, where a negative one stands for so many empty buckets.  The payloads of many lines are
decoded at once, as one array: only unpacking is done line by line.  Lines are independent, so
a bad one costs itself only.

Logs of others have no line of ours: their host is the name of the file, their queue the tag.
"""

from __future__ import annotations

import re
import struct
import zlib
from binascii import a2b_base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from shmbroker.perf.spark.geometry import MOST
from shmbroker.perf.spark.interval import Intervals, Journal, repeated

VERSION = "1"
LINE_BYTES_MAX = 8 << 20
PAYLOAD_BYTES_MAX = 16 << 20
"""Unpacked: what 5 digits over 64 bits can take if counts are small.  Guards against zip bombs."""
READ_BYTES = 4 << 20
LINES_AT_ONCE = 1024
ZERO = np.zeros(1, np.int64)

YEAR_NS = 365 * 24 * 3600 * 10**9

OUTER = struct.Struct(">II")
INNER = struct.Struct(">Iiiiqqd")
V2_COMPRESSED, V2 = 0x1C849314, 0x1C849313
OTHERS = {
    0x1C849304: "V2, compressed, of an old kind", 0x1C849301: "V1", 0x1C849302: "V1, compressed",
    0x1C849311: "V1", 0x1C849312: "V1, compressed", 0x1C849308: "V0", 0x1C849309: "V0, compressed",
    0x0C72124E: "of floating point numbers", 0x0C72124F: "of floating point numbers, compressed",
}  # fmt: skip

TIME_LINE = re.compile(rb"#\[(StartTime|BaseTime): *(\d+)(?:\.(\d*))? ")
OURS = re.compile(rb"#\[shmbroker spool (\S+)((?: \w+=\S*)*)\]")
OVERFLOW = re.compile(rb"#\[overflow Tag=(\S*) count=(\d+)\]")
FORMAT = re.compile(rb"#\[Histogram log format version (\S+)\]")


class Unreadable(Exception):
    """Nothing more can be got from this file."""


class Line(NamedTuple):
    """An interval that waits to be decoded together with others."""

    offset: int
    tag: str
    start: int
    end: int
    overflow: int
    payload: bytes
    geometry: tuple[int, int, int]


def read(file: str, stream: IO[bytes], journal: Journal) -> Iterator[pa.RecordBatch]:
    """All rows of one log but those that end it."""
    log = Log(file, journal)
    try:
        for offset, line in lines_of(stream, journal):
            log.add(offset, line)
            if len(log.waiting) >= LINES_AT_ONCE:
                yield from log.flush()
    except (Unreadable, OSError) as error:
        # what came before it is good: each line stands by itself
        journal.problem(log.at, f"{error}: not read from here on")
    yield from log.flush()
    for tag, count in log.overflows.items():
        journal.problem(log.at, f"{count} values above the highest, of no interval: {tag}", count)


def lines_of(stream: IO[bytes], journal: Journal) -> Iterator[tuple[int, bytes]]:
    """Each line and where it begins; one that is too long is told of and skipped."""
    offset, rest, is_skipping = 0, b"", False
    chunk = stream.read(READ_BYTES)
    if not chunk:
        raise Unreadable("the file is empty")
    if chunk[:4] == b"PAR1" or b"\0" in chunk[:4096]:
        raise Unreadable("this is no text, so it is no .hlog")
    while chunk:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if not is_skipping:
                yield offset, line
            offset, is_skipping = offset + len(line) + 1, False
        if len(rest) > LINE_BYTES_MAX:
            if not is_skipping:
                journal.problem(offset, f"a line of more than {LINE_BYTES_MAX >> 20} MiB")
            offset, rest, is_skipping = offset + len(rest), b"", True
        chunk = stream.read(READ_BYTES)
    if rest and not is_skipping:
        yield offset, rest


class Log:
    """What the comments so far have said, and the lines that wait."""

    def __init__(self, file: str, journal: Journal) -> None:
        self.journal = journal
        self.host = PurePosixPath(file).stem
        self.vhost = self.build = ""
        self.is_ours = False
        self.start_time: int | None = None
        self.base_time: int | None = None
        self.overflows: dict[str, int] = {}
        self.owners: dict[str, tuple[str, str]] = {}
        self.waiting: list[Line] = []
        self.at = 0
        journal.host = self.host

    def add(self, offset: int, line: bytes) -> None:
        self.at = offset
        line = line.rstrip(b"\r")
        if line.startswith(b"#"):
            self._comment(line)
        elif line and not line.startswith(b'"'):
            try:
                self._interval(offset, line)
            except (ValueError, zlib.error, struct.error) as error:
                self.journal.problem(offset, f"no interval: {error}")

    def _comment(self, line: bytes) -> None:
        if match := TIME_LINE.match(line):
            at = nanoseconds(match[2], match[3] or b"")
            if match[1] == b"StartTime":
                self.start_time = at
            else:
                self.base_time = at
        elif match := OURS.match(line):
            self._ours(match)
        elif match := OVERFLOW.match(line):
            tag = match[1].decode(errors="replace")
            self.overflows[tag] = self.overflows.get(tag, 0) + int(match[2])
        elif line.startswith(b"#[shmbroker"):
            raise Unreadable("a line of ours that is damaged")
        elif (match := FORMAT.match(line)) and not match[1].startswith(b"1."):
            version = match[1].decode(errors="replace")
            raise Unreadable(f"version {version} of the log's format; known are 1.0 to 1.3")

    def _ours(self, match: re.Match[bytes]) -> None:
        version = match[1].decode(errors="replace")
        if version != VERSION:
            raise Unreadable(
                f"version {version} of the spool; known is {VERSION}: update shmbroker"
            )
        pairs = dict(pair.split("=", 1) for pair in match[2].decode(errors="replace").split())
        known = {name: unquote(value) for name, value in pairs.items()}
        self.host, self.vhost = known.get("host", self.host), known.get("vhost", "")
        self.build, self.is_ours = known.get("build", ""), True
        self.journal.host, self.journal.vhost = self.host, self.vhost

    def _interval(self, offset: int, line: bytes) -> None:
        fields = line.split(b",")
        tag = ""
        if fields[0].startswith(b"Tag="):
            tag = fields.pop(0)[4:].decode()
        if len(fields) != 4:
            raise ValueError("it is neither a comment nor start, length, maximum and histogram")
        begin, length = seconds(fields[0]), seconds(fields[1])
        payload, geometry = unpacked(fields[3])
        start = begin + self._base(begin)
        if start + length > MOST:
            raise ValueError("it ends after the year 2262")
        overflow = min(self.overflows.pop(tag, 0), MOST) if self.overflows else 0
        self.waiting.append(Line(offset, tag, start, start + length, overflow, payload, geometry))

    def _base(self, begin: int) -> int:
        """As HdrHistogram has it: without a base, times a year before the start are relative."""
        if self.start_time is None:
            self.start_time = begin
        if self.base_time is None:
            self.base_time = self.start_time if begin < self.start_time - YEAR_NS else 0
        return self.base_time

    def flush(self) -> Iterator[pa.RecordBatch]:
        waiting, self.waiting = self.waiting, []
        decoded = decoded_payloads([line.payload for line in waiting])
        for row, what in decoded.faults.items():
            self.journal.problem(waiting[row].offset, f"no interval: {what}")
        good = [row for row in range(len(waiting)) if row not in decoded.faults]
        lines = [waiting[row] for row in good]
        if not lines:
            return
        offsets, tags, starts, ends, overflows, _, geometries = zip(*lines, strict=True)
        owners = [self._owner(tag) for tag in tags]
        geometry = np.array(geometries, np.int64)
        texts = {
            "queue": pa.array([queue for queue, _ in owners]),
            "kind": pa.array([kind for _, kind in owners]),
            "host": repeated(self.host, len(lines)),
            "vhost": repeated(self.vhost, len(lines)),
            "build": repeated(self.build, len(lines)),
        }
        numbers = {
            "start": np.array(starts, np.int64),
            "end": np.array(ends, np.int64),
            "overflow": np.array(overflows, np.int64),
            "lowest": geometry[:, 0],
            "highest": geometry[:, 1],
        }
        found = Intervals(
            np.array(offsets, np.int64), texts, numbers, geometry[:, 2].astype(np.int32),
            np.concatenate([ZERO, decoded.ends[1:][good]]), decoded.indexes, decoded.counts,
        )  # fmt: skip
        numbers["total"] = found.sums
        yield from self.journal.take(found)

    def _owner(self, tag: str) -> tuple[str, str]:
        """Queue and kind, as the tag has them."""
        if not self.is_ours:
            return tag, ""
        if tag not in self.owners:
            queue, _, kind = tag.partition(";")
            self.owners[tag] = unquote(queue), unquote(kind)
        return self.owners[tag]


@lru_cache(1024)
def seconds(text: bytes) -> int:
    whole, _, fraction = text.partition(b".")
    return nanoseconds(whole, fraction)


def nanoseconds(whole: bytes, fraction: bytes) -> int:
    if not whole.isdigit() or not (fraction.isdigit() or not fraction) or len(whole) > 11:
        raise ValueError(f"{(whole + b'.' + fraction)[:40]!r} is no time in seconds")
    return int(whole) * 10**9 + int(fraction[:9].ljust(9, b"0"))


def unpacked(text: bytes) -> tuple[bytes, tuple[int, int, int]]:
    """The counts as they are written, and the geometry."""
    raw = a2b_base64(text, strict_mode=True)
    if len(raw) < OUTER.size:
        raise ValueError("its histogram is truncated")
    cookie, length = OUTER.unpack_from(raw)
    check_cookie(cookie, V2_COMPRESSED)
    if length != len(raw) - OUTER.size:
        have = len(raw) - OUTER.size
        raise ValueError(f"its histogram has {have:,} bytes and says {length:,}: truncated?")
    unpacker = zlib.decompressobj()
    payload = unpacker.decompress(raw[OUTER.size :], PAYLOAD_BYTES_MAX)
    if not unpacker.eof:
        is_bomb = len(payload) >= PAYLOAD_BYTES_MAX
        raise ValueError("its histogram is too large" if is_bomb else "its histogram is truncated")
    cookie, size, shift, digits, lowest, highest, _ratio = INNER.unpack_from(payload)
    check_cookie(cookie, V2)
    if shift:
        raise ValueError("its buckets are shifted, which is not supported")
    if not 0 <= size <= len(payload) - INNER.size:
        raise ValueError(f"its counts say {size:,} bytes, there are {len(payload) - INNER.size:,}")
    return payload[INNER.size : INNER.size + size], (lowest, highest, digits)


def check_cookie(cookie: int, wanted: int) -> None:
    if cookie == wanted:
        return
    if int.from_bytes(cookie.to_bytes(4, "little")) == wanted:
        raise ValueError("its histogram has the bytes of each number in the wrong order")
    what = OTHERS.get(cookie)
    raise ValueError(f"a histogram {what}: only V2 is read" if what else "this is no histogram")


@dataclass(frozen=True)
class Decoded:
    """Buckets of row i are at ends[i]:ends[i + 1]; a faulty one has none."""

    ends: np.ndarray
    indexes: np.ndarray
    counts: np.ndarray
    faults: dict[int, str]


def decoded_payloads(payloads: list[bytes]) -> Decoded:
    """Many at once."""
    from shmbroker.perf.spark.unpacking import WHAT, unpack_fast  # a second; Parquet needs it not

    lengths = [len(payload) for payload in payloads]
    edges = np.concatenate([ZERO, np.cumsum(lengths, dtype=np.int64)])
    octets = np.frombuffer(b"".join(payloads), np.uint8)
    ends = np.zeros(len(edges), np.int64)
    indexes, counts = np.empty(len(octets), np.int32), np.empty(len(octets), np.int64)
    faults = np.zeros(len(payloads), np.uint8)
    filled = unpack_fast(octets, edges, ends, indexes, counts, faults)
    told = {int(row): WHAT[int(faults[row])] for row in np.flatnonzero(faults)}
    return Decoded(ends, indexes[:filled], counts[:filled], told)
