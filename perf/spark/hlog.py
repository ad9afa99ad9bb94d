"""HdrHistogram's log, versions 1.0 to 1.3, read a few thousand lines at a time.

    #[StartTime: 1763740800.000000 (seconds since epoch), ...]
    #[shmbroker spool 1 host=a vhost=default build=0.1.0]
    #[overflow Tag=orders;publish-take count=3]
    Tag=orders;publish-take,0.000000,10.000000,1.5,HISTFAAAA...

A line's payload is base64 of zlib of a header and the counts from index 0 on: each a zigzag
LEB128, where a negative one stands for so many empty buckets.  Lines are independent, so a bad
one costs itself only.

There are two ways.  What is regular is done by C, many lines at once (`lines.c`, `counts.c`); here
each is inflated, no more.  What is not goes the slow way,
in Python, which says exactly what is wrong, or finds that nothing is.

Logs of others have no line of ours: their host is the name of the file, their queue the tag.
"""

from __future__ import annotations

import re
import struct
import zlib
from binascii import a2b_base64
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from shmbroker.perf.spark.counts import FOREIGN, WHAT, ZERO, unpacked
from shmbroker.perf.spark.geometry import MOST
from shmbroker.perf.spark.interval import MESSAGES_MAX, Intervals, repeated
from shmbroker.perf.spark.journal import Journal
from shmbroker.perf.spark.lines import Lines

VERSION = "1"
LINE_BYTES_MAX = 8 << 20
PAYLOAD_BYTES_MAX = 16 << 20
"""Unpacked: what 5 digits over 64 bits can take if counts are small.  Guards against zip bombs."""
READ_BYTES = 4 << 20
UNPACK_BYTES = 4 << 20
"""What is unpacked at once, or one line if that has more: it takes up to twelve times the room."""

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


class Overflow(NamedTuple):
    """Values above the highest, of the next interval of that tag, which is not before `row`."""

    row: int
    tag: bytes
    values: int


def read(file: str, stream: IO[bytes], journal: Journal) -> Iterator[pa.RecordBatch]:
    """All rows of one log but those that end it."""
    log = Log(file, journal)
    try:
        for offset, text in blocks_of(stream, journal):
            yield from log.add(offset, text)
    except (Unreadable, OSError) as error:
        # what came before it is good: each line stands by itself
        journal.problem(log.at, f"{error}: not read from here on")
    yield from log.flush()
    for tag, count in log.left().items():
        what = f"{count} values above the highest, of no interval: {tag.decode(errors='replace')}"
        journal.problem(log.at, what, count if count <= MESSAGES_MAX else 0)


def blocks_of(stream: IO[bytes], journal: Journal) -> Iterator[tuple[int, bytes]]:
    """Some whole lines and where they begin; one that is too long is told of and skipped."""
    offset, rest, is_skipping = 0, b"", False
    chunk = stream.read(READ_BYTES)
    if not chunk:
        raise Unreadable("the file is empty")
    if chunk[:4] == b"PAR1" or b"\0" in chunk[:4096]:
        raise Unreadable("this is no text, so it is no .hlog")
    while chunk:
        text = rest + chunk
        end = text.rfind(b"\n") + 1
        if end:
            begin = text.find(b"\n") + 1 if is_skipping else 0
            if begin < end:
                yield offset + begin, text[begin:end]
            is_skipping = False
        rest = text[end:]
        offset += end
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
        self.overflows: list[Overflow] = []
        self.owners: dict[bytes, tuple[str, str]] = {}
        self.lines = Lines(b"")
        self.offset = 0
        self.at = 0
        journal.host = self.host

    def add(self, offset: int, text: bytes) -> Iterator[pa.RecordBatch]:
        """Some whole lines: those of C as far as they go, then one of Python, and so on."""
        self.offset, self.lines = offset, Lines(text)
        at = 0
        while at < len(text):
            if self.base_time is not None and self.base_time <= MOST:
                at = self.lines.scan(at, self.base_time)
            if self.lines.is_full or self.lines.known_bytes > UNPACK_BYTES:
                yield from self.flush()
            elif at < len(text):
                end = text.find(b"\n", at)
                line = text[at : end if end >= 0 else len(text)]
                self.at = offset + at
                if line.startswith(b"#[shmbroker"):
                    yield from self.flush()  # what comes may be of another host
                self._line(at, line)
                at += len(line) + 1
        yield from self.flush()
        self.at = offset + text.rfind(b"\n", 0, -1) + 1

    def _line(self, at: int, line: bytes) -> None:
        line = line.rstrip(b"\r")
        if line.startswith(b"#"):
            try:
                self._comment(line)
            except ValueError as error:
                self.journal.problem(self.at, f"a comment that cannot be: {error}")
        elif line and not line.startswith(b'"'):
            try:
                self._interval(at, line)
            except (ValueError, zlib.error, struct.error) as error:
                self.journal.problem(self.at, f"no interval: {error}")

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
            if len(match[2]) > 19:
                raise ValueError("more values above the highest than can be counted")
            self.overflows.append(Overflow(len(self.lines), match[1], int(match[2])))
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

    def _interval(self, at: int, line: bytes) -> None:
        fields = line.split(b",")
        tag = b""
        if fields[0].startswith(b"Tag="):
            tag = fields.pop(0)[4:]
            tag.decode()
        if len(fields) != 4:
            raise ValueError("it is neither a comment nor start, length, maximum and histogram")
        begin, length = seconds(fields[0]), seconds(fields[1])
        payload = inflated(deflated(fields[3]))
        check_header(payload)
        start = begin + self._base(begin)
        if start + length > MOST:
            raise ValueError("it ends after the year 2262")
        self.lines.put(at, tag, start, start + length, payload)

    def _base(self, begin: int) -> int:
        """As HdrHistogram has it: without a base, times a year before the start are relative."""
        if self.start_time is None:
            self.start_time = begin
        if self.base_time is None:
            self.base_time = self.start_time if begin < self.start_time - YEAR_NS else 0
        return self.base_time

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The intervals of the lines so far."""
        rows: list[int] = []
        payloads: list[bytes] = []
        size, known = 0, self.lines.known
        for row, raw in enumerate(self.lines.deflated):
            try:
                payload = inflated(raw) if raw else known[row]
            except (ValueError, zlib.error) as error:
                self._problem(row, error)
                continue
            rows.append(row)
            payloads.append(payload)
            size += len(payload)
            if size > UNPACK_BYTES:
                yield from self._unpacked(rows, payloads)
                rows, payloads, size = [], [], 0
        if rows:
            yield from self._unpacked(rows, payloads)
        self.lines.clear()
        self.overflows = [Overflow(0, tag, count) for tag, count in self.left().items()]

    def _problem(self, row: int, what: object) -> None:
        self.journal.problem(self.offset + int(self.lines.at[row]), f"no interval: {what}")

    def _unpacked(self, of: list[int], payloads: list[bytes]) -> Iterator[pa.RecordBatch]:
        rows = np.array(of)
        found = unpacked(payloads)
        for row in np.flatnonzero(found.faults):
            self._problem(of[row], WHAT.get(found.faults[row]) or header_fault(payloads[row]))
        tags = self.lines.tags
        overflow = self._overflow(rows[found.faults != FOREIGN], tags)
        good = found.faults == 0
        rows = rows[good]
        if not len(rows):
            return
        owners = [self._owner(tag.as_py()) for tag in tags.dictionary]
        which = tags.indices.take(pa.array(rows))
        texts = {
            "queue": pa.array([queue for queue, _ in owners]).take(which),
            "kind": pa.array([kind for _, kind in owners]).take(which),
            "host": repeated(self.host, len(rows)),
            "vhost": repeated(self.vhost, len(rows)),
            "build": repeated(self.build, len(rows)),
        }
        numbers = {
            "start": self.lines.start[rows],
            "end": self.lines.end[rows],
            "overflow": overflow[rows],
            "lowest": found.lowest[good],
            "highest": found.highest[good],
        }
        intervals = Intervals(
            self.offset + self.lines.at[rows], texts, numbers, found.digits[good],
            np.concatenate([ZERO, found.ends[1:][good]]), found.indexes, found.counts,
        )  # fmt: skip
        numbers["total"], _ = intervals.checked
        yield from self.journal.take(intervals)

    def _overflow(self, rows: np.ndarray, tags: pa.DictionaryArray) -> np.ndarray:
        """By line: what comments before it have said; that is forgotten, as it is told."""
        overflow = np.zeros(len(self.lines), np.int64)
        if not self.overflows:
            return overflow
        which = np.asarray(tags.indices)[rows]
        numbers = {tag.as_py(): number for number, tag in enumerate(tags.dictionary)}
        later = []
        for one in self.overflows:
            of_tag = rows[(which == numbers.get(one.tag, -1)) & (rows >= one.row)]
            if len(of_tag):
                row = of_tag[0]
                overflow[row] = min(int(overflow[row]) + one.values, MOST)
            else:
                later.append(one)
        self.overflows = later
        return overflow

    def left(self) -> dict[bytes, int]:
        """Values above the highest, by tag, that no interval had yet."""
        found: dict[bytes, int] = {}
        for _, tag, values in self.overflows:
            found[tag] = found.get(tag, 0) + values
        return found

    def _owner(self, tag: bytes) -> tuple[str, str]:
        """Queue and kind, as the tag has them."""
        if not self.is_ours:
            return tag.decode(), ""
        if tag not in self.owners:
            queue, _, kind = tag.decode().partition(";")
            self.owners[tag] = unquote(queue), unquote(kind)
        return self.owners[tag]


def seconds(text: bytes) -> int:
    whole, _, fraction = text.partition(b".")
    return nanoseconds(whole, fraction)


def nanoseconds(whole: bytes, fraction: bytes) -> int:
    if not whole.isdigit() or not (fraction.isdigit() or not fraction) or len(whole) > 11:
        raise ValueError(f"{(whole + b'.' + fraction)[:40]!r} is no time in seconds")
    return int(whole) * 10**9 + int(fraction[:9].ljust(9, b"0"))


def deflated(text: bytes) -> bytes:
    """The histogram of a line, still deflated."""
    raw = a2b_base64(text, strict_mode=True)
    if len(raw) < OUTER.size:
        raise ValueError("its histogram is truncated")
    cookie, length = OUTER.unpack_from(raw)
    check_cookie(cookie, V2_COMPRESSED)
    if length != len(raw) - OUTER.size:
        have = len(raw) - OUTER.size
        raise ValueError(f"its histogram has {have:,} bytes and says {length:,}: truncated?")
    return raw[OUTER.size :]


def inflated(raw: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    payload = unpacker.decompress(raw, PAYLOAD_BYTES_MAX)
    if not unpacker.eof:
        is_bomb = len(payload) >= PAYLOAD_BYTES_MAX
        raise ValueError("its histogram is too large" if is_bomb else "its histogram is truncated")
    return payload


def check_header(payload: bytes) -> None:
    cookie, size, shift, _digits, _lowest, _highest, _ratio = INNER.unpack_from(payload)
    check_cookie(cookie, V2)
    if shift:
        raise ValueError("its buckets are shifted, which is not supported")
    if not 0 <= size <= len(payload) - INNER.size:
        raise ValueError(f"its counts say {size:,} bytes, there are {len(payload) - INNER.size:,}")


def header_fault(payload: bytes) -> str:
    try:
        check_header(payload)
    except (ValueError, struct.error) as error:
        return str(error)
    raise AssertionError("a header that C refused and Python takes")


def check_cookie(cookie: int, wanted: int) -> None:
    if cookie == wanted:
        return
    if int.from_bytes(cookie.to_bytes(4, "little")) == wanted:
        raise ValueError("its histogram has the bytes of each number in the wrong order")
    what = OTHERS.get(cookie)
    raise ValueError(f"a histogram {what}: only V2 is read" if what else "this is no histogram")
