"""Histogram logs (.hlog), as the tools of HdrHistogram read and write them.

A histogram is a payload in base64: lengths, precision and range, then the counts as variable-length
numbers, where a negative one stands for so many empty buckets (encoding V2, compressed).
"""

from __future__ import annotations

import re
import struct
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import gmtime, strftime
from urllib.parse import unquote

from shmbroker.ipc.base.errors import Damaged, InvalidArgument
from shmbroker.ipc.latency.latency import Histogram, Range

COOKIE = 0x1C849313
COMPRESSED_COOKIE = 0x1C849314
HEADER = struct.Struct(">iiiiqqd")  # cookie, bytes, offset, digits, lowest, highest, ratio
ENVELOPE = struct.Struct(">ii")
PAYLOAD_BYTES_MAX = 1 << 24
WORD = 1 << 64
LAST_BYTE = 8  # the ninth has all its bits for the number
LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
MILLISECOND = 1e6
SECOND = 10**9


# --- one histogram --------------------------------------------------------------------------------


def _numbers(values: Iterable[int]) -> bytes:
    """ZigZag LEB128, at most 9 bytes each."""
    packed = bytearray()
    for value in values:
        left = (value << 1 ^ value >> 63) % WORD
        for _ in range(LAST_BYTE):
            if left < 0x80:
                break
            packed.append(left & 0x7F | 0x80)
            left >>= 7
        packed.append(left)
    return bytes(packed)


def _counts(histogram: Histogram) -> Iterator[int]:
    at = 0
    for index, count in zip(histogram.indexes, histogram.counts, strict=True):
        if index > at:
            yield at - index
        yield count
        at = index + 1


def encode(histogram: Histogram) -> str:
    payload = _numbers(_counts(histogram))
    of = histogram.range
    header = HEADER.pack(COOKIE, len(payload), 0, of.digits, of.lowest, of.highest, 1.0)
    packed = zlib.compress(header + payload)
    return b64encode(ENVELOPE.pack(COMPRESSED_COOKIE, len(packed)) + packed).decode()


def _unpacked(payload: bytes) -> Iterator[int]:
    at = 0
    while at < len(payload):
        value = shift = 0
        for place in range(LAST_BYTE + 1):
            if at == len(payload):
                raise Damaged("a histogram that ends within a number")
            byte = payload[at]
            at += 1
            value |= (byte if place == LAST_BYTE else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        value %= WORD
        yield value >> 1 ^ -(value & 1)


def decode(text: str) -> Histogram:
    """Damaged if it is no histogram that we could have: nothing of it is believed unchecked."""
    try:
        whole = b64decode(text, validate=True)
        cookie, length = ENVELOPE.unpack_from(whole)
        if cookie != COMPRESSED_COOKIE or length != len(whole) - ENVELOPE.size:
            raise Damaged("not a compressed histogram of encoding V2")
        inflating = zlib.decompressobj()
        packed = inflating.decompress(whole[ENVELOPE.size :], PAYLOAD_BYTES_MAX)
        cookie, length, offset, digits, lowest, highest, _ = HEADER.unpack_from(packed)
        if not inflating.eof or cookie != COOKIE or length != len(packed) - HEADER.size:
            raise Damaged("not a histogram of encoding V2")
        if offset != 0:
            raise Damaged(f"a histogram that is shifted by {offset} buckets")
        range_ = Range(lowest, highest, digits)
    except (ValueError, struct.error, zlib.error, InvalidArgument) as error:
        raise Damaged(f"not a histogram: {error}") from error
    return _decoded(range_, packed[HEADER.size :])


def _decoded(range_: Range, payload: bytes) -> Histogram:
    indexes, counts = array("q"), array("q")
    at = 0
    for value in _unpacked(payload):
        if value > 0:
            indexes.append(at)
            counts.append(value)
        at += -value if value < 0 else 1
        if at > range_.length:
            raise Damaged(f"a histogram with more than its {range_.length} buckets")
    return Histogram(range_, indexes, counts)


# --- a log ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interval:
    """What was counted of one kind in one queue, between two moments in ns since the epoch."""

    queue: str
    kind: str
    start: int
    end: int
    histogram: Histogram


def quote(text: str) -> str:
    """Percent-encode what a tag or a comment cannot hold."""
    return re.sub(
        r"[\x00-\x1f\s%,;\[\]\x7f]",
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()),
        text,
    )


def seconds(ns: int) -> str:
    return f"{ns // SECOND}.{ns % SECOND:09}"


def nanoseconds(text: str) -> int:
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdecimal():
        raise Damaged(f"not a time: {text[:32]!r}")
    return int(whole or 0) * SECOND + int(fraction[:9].ljust(9, "0"))


def head(start: int, host: str, vhost: str, build: str) -> str:
    """The comments that a log begins with."""
    when = strftime("%a %b %d %H:%M:%S UTC %Y", gmtime(start / SECOND))
    return (
        f"#[shmbroker spool 1 host={quote(host)} vhost={quote(vhost)} build={quote(build)}]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {seconds(start)} (seconds since epoch), {when}]\n{LEGEND}"
    )


def line(interval: Interval) -> str:
    histogram = interval.histogram
    tag = f"Tag={quote(interval.queue)};{interval.kind}"
    overflow = f"#[overflow {tag} count={histogram.overflow}]\n" if histogram.overflow else ""
    start, length = seconds(interval.start), seconds(interval.end - interval.start)
    longest = f"{histogram.maximum / MILLISECOND:.6f}"
    return f"{overflow}{tag},{start},{length},{longest},{encode(histogram)}\n"


HEAD = re.compile(r"#\[shmbroker spool (\d+) host=(\S*) vhost=(\S*) build=(\S*)\]$")
OVERFLOW = re.compile(r"#\[overflow (Tag=\S*) count=(\d+)\]$")
LINE = re.compile(r"(Tag=[^,]*),([\d.]+),([\d.]+),[\d.]*,(\S+)$")


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose log it is."""

    host: str
    vhost: str
    build: str


def read(lines: Iterable[str]) -> Iterator[Origin | Interval]:
    """What a log of ours holds, its origin first; Damaged names the line that is no part of one."""
    overflows: dict[str, int] = {}
    for number, text in enumerate(lines, 1):
        try:
            yield from _read(text.rstrip("\n"), number, overflows)
        except Damaged as error:
            raise Damaged(f"line {number}: {error}") from error


def _read(text: str, number: int, overflows: dict[str, int]) -> Iterator[Origin | Interval]:
    if number == 1:
        found = HEAD.match(text)
        if found is None or found[1] != "1":
            raise Damaged(f"not a spool of version 1: {text[:64]!r}")
        yield Origin(*(unquote(each) for each in found.groups()[1:]))
    elif found := OVERFLOW.match(text):
        overflows[found[1]] = int(found[2])
    elif found := LINE.match(text):
        queue, _, kind = found[1].removeprefix("Tag=").partition(";")
        start = nanoseconds(found[2])
        counted = decode(found[4])
        counted = Histogram(
            counted.range, counted.indexes, counted.counts, overflows.pop(found[1], 0)
        )
        yield Interval(unquote(queue), kind, start, start + nanoseconds(found[3]), counted)
    elif not text.startswith("#") and text + "\n" != LEGEND:
        raise Damaged(f"not an interval: {text[:64]!r}")
