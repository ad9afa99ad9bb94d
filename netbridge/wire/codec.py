"""Frames to bytes and back."""

from __future__ import annotations

import struct
from typing import Any, Final

import msgpack

from shmbroker.netbridge.wire.frame import (
    COUNT_MAX,
    GROWING,
    KINDS,
    Body,
    Carrying,
    Frame,
    bounds_of,
    named,
)
from shmbroker.netbridge.wire.malformed import Malformed

HEAD_BYTES_MAX = 8192
VALUES_MAX = 64
LENGTH: Final = struct.Struct("<I")
"""Of the head, in front of it."""

_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}
_BOUNDS: Final = {kind: bounds_of(kind) for kind in KINDS}
_NOT_MESSAGEPACK: Final = (
    ValueError,  # with it: too deep, too long, no UTF-8, bytes behind it
    TypeError,
    OverflowError,
    msgpack.exceptions.UnpackException,
)


def encode(frame: Frame, number: int) -> bytes:
    """The message for a frame that is the so-manieth on its connection."""
    kind = type(frame)
    values: list[object] = [_NUMBERS[kind], number]
    for name, bound in _BOUNDS[kind]:
        try:
            values.append(bound.write(getattr(frame, name)))
        except Malformed as error:
            raise Malformed(f"{named(kind)}: {name} {error}") from None
    frame.check()
    head: bytes = msgpack.packb(values)
    body = frame.body if isinstance(frame, Carrying) else b""
    return b"".join((LENGTH.pack(len(head)), head, body))


def decode(message: Body, frame_bytes: int) -> tuple[int, Frame]:
    """The number of a frame and the frame; Malformed, and no other error, says what is wrong."""
    whole = memoryview(message)
    size = len(whole) - LENGTH.size
    length = LENGTH.unpack_from(whole)[0] if size >= 0 else 0
    if not 0 < length <= min(HEAD_BYTES_MAX, size) or size > frame_bytes:
        raise Malformed(f"a frame with a head of {length} bytes and {size} bytes in all")
    values = _values(whole[LENGTH.size : LENGTH.size + length])
    body = whole[LENGTH.size + length :]
    kind = _kind(values[0])
    number = values[1]
    if type(number) is not int or not 0 <= number <= COUNT_MAX:
        raise Malformed(f"{named(kind)}: the number of the frame is no number")
    if len(body) and not issubclass(kind, Carrying):
        raise Malformed(f"{named(kind)}: {len(body)} bytes behind the head")
    return number, _made(kind, values[2:], body)


def _values(head: Body) -> list[Any]:
    try:
        values = msgpack.unpackb(
            head,
            max_array_len=VALUES_MAX,
            max_map_len=0,
            max_ext_len=0,
            max_str_len=HEAD_BYTES_MAX,
            max_bin_len=HEAD_BYTES_MAX,
        )
    except _NOT_MESSAGEPACK as error:
        raise Malformed(f"the head of a frame is not MessagePack: {error}") from None
    if not isinstance(values, list) or len(values) < 2:
        raise Malformed("the head of a frame is no list of kind, number and fields")
    return values


def _kind(number: object) -> type[Frame]:
    if type(number) is not int or not 0 <= number < len(KINDS):
        raise Malformed(f"there is no kind of frames {number!r:.40}")
    return KINDS[number]


def _made(kind: type[Frame], values: list[object], body: memoryview) -> Frame:
    bounds = _BOUNDS[kind]
    if len(values) < len(bounds) or (len(values) > len(bounds) and kind not in GROWING):
        raise Malformed(f"{named(kind)}: {len(values)} fields, not {len(bounds)}")
    given: list[object] = []
    for (name, bound), value in zip(bounds, values, strict=False):
        try:
            given.append(bound.read(value))
        except Malformed as error:
            raise Malformed(f"{named(kind)}: {name} {error}") from None
    if issubclass(kind, Carrying):
        given.append(body)  # it is the last field
    make: Any = kind
    frame: Frame = make(*given)
    try:
        frame.check()
    except Malformed as error:
        raise Malformed(f"{named(kind)}: {error}") from None
    return frame
