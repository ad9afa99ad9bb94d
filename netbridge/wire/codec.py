"""Frames to bytes and back."""

from __future__ import annotations

from collections.abc import Sequence
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

_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}
_BOUNDS: Final = {kind: bounds_of(kind) for kind in KINDS}
_NOT_MESSAGEPACK: Final = (
    ValueError,  # with it: too deep, too long, no UTF-8, bytes behind it
    TypeError,
    OverflowError,
    msgpack.exceptions.UnpackException,
)


def encode(frame: Frame, number: int) -> list[Body]:
    """The parts of the message for a frame that is the so-manieth on its connection."""
    kind = type(frame)
    values: list[object] = [_NUMBERS[kind], number]
    for name, bound in _BOUNDS[kind]:
        values.append(_said(kind, name, bound.write, getattr(frame, name)))
    frame.check()
    head: bytes = msgpack.packb(values)
    return [head, frame.body] if isinstance(frame, Carrying) else [head]


def decode(parts: Sequence[Body], frame_bytes: int) -> tuple[int, Frame]:
    """The number of a frame and the frame; Malformed, and no other error, says what is wrong."""
    if not 1 <= len(parts) <= 2:
        raise Malformed(f"a frame has one part or two, not {len(parts)}")
    size = sum(len(part) for part in parts)
    if len(parts[0]) > HEAD_BYTES_MAX or size > frame_bytes:
        raise Malformed(f"a frame with a head of {len(parts[0])} bytes and {size} bytes in all")
    values = _values(parts[0])
    kind = _kind(values[0])
    number = values[1]
    if type(number) is not int or not 0 <= number <= COUNT_MAX:
        raise Malformed(f"{named(kind)}: the number of the frame is no number")
    if issubclass(kind, Carrying) != (len(parts) == 2):
        raise Malformed(f"{named(kind)}: a frame of {len(parts)} parts")
    return number, _made(kind, values[2:], parts[1:])


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


def _made(kind: type[Frame], values: list[object], bodies: Sequence[Body]) -> Frame:
    bounds = _BOUNDS[kind]
    if len(values) < len(bounds) or (len(values) > len(bounds) and kind not in GROWING):
        raise Malformed(f"{named(kind)}: {len(values)} fields, not {len(bounds)}")
    given: dict[str, object] = {
        name: _said(kind, name, bound.read, value)
        for (name, bound), value in zip(bounds, values, strict=False)
    }
    if bodies:
        given["body"] = bodies[0]
    make: Any = kind
    frame: Frame = make(**given)
    try:
        frame.check()
    except Malformed as error:
        raise Malformed(f"{named(kind)}: {error}") from None
    return frame


def _said(kind: type[Frame], name: str, read: Any, value: object) -> object:
    try:
        return read(value)
    except Malformed as error:
        raise Malformed(f"{named(kind)}: {name} {error}") from None
