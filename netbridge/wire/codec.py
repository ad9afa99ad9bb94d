"""Frames to bytes and back.

A frame that is as it should be is checked all at once: the types of its fields, then the ranges of
its numbers.  Any other is checked field by field, so that the error names what is wrong.
"""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import Any, Final

import msgpack

from shmbroker.netbridge.wire.field import Bound, Choice, Flag, Number
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
from shmbroker.netbridge.wire.malformed import Malformed, shown

HEAD_BYTES_MAX = 8192
VALUES_MAX = 64
LENGTH: Final = struct.Struct("<I")
"""Of the head, in front of it."""
LENGTH_BYTES: Final = LENGTH.size
_length_at: Final = LENGTH.unpack_from

_pack: Final = msgpack.Packer().pack
_NOT_MESSAGEPACK: Final = (
    ValueError,  # with it: too deep, too long, no UTF-8, bytes behind it
    TypeError,
    OverflowError,
    msgpack.exceptions.UnpackException,
)


class _Shape:
    """What the head of a kind of frames is like."""

    def __init__(self, number: int, kind: type[Frame]) -> None:
        bounds = bounds_of(kind)
        self.kind, self.number = kind, number
        self.bounds = bounds
        self.make: Any = kind
        self.carries = issubclass(kind, Carrying)
        self.grows = kind in GROWING
        self.checks = kind.check is not Frame.check
        self._fields = attrgetter(*(name for name, _ in bounds), "__class__", "__class__")
        """Two more than there are: of fewer it would make no tuple."""
        self._types = tuple(_type_in_frame(bound) for _, bound in bounds)
        self._wire_types = [_type_on_wire(bound) for _, bound in bounds]
        self._numbers = [
            (at, bound.least, bound.most)
            for at, (_, bound) in enumerate(bounds)
            if isinstance(bound, Number)
        ]
        self._words = [
            (at, {each.value: each for each in bound.of})
            for at, (_, bound) in enumerate(bounds)
            if isinstance(bound, Choice)
        ]
        self._is_plain = len(self._numbers) + len(self._words) == sum(
            not isinstance(bound, Flag) for _, bound in bounds
        )
        """It has no text and no octets: what `read` and `write` see is all that there is to see."""

    def write(self, frame: Frame) -> list[Any]:
        """The values of its fields for the wire; Malformed."""
        values = list(self._fields(frame)[:-2])
        if self._is_plain and tuple(map(type, values)) == self._types:
            if not self._numbers or self._in_range(values):
                for at, _ in self._words:
                    values[at] = values[at]._value_
                return values
        for at, (name, bound) in enumerate(self.bounds):
            try:
                values[at] = bound.write(values[at])
            except Malformed as error:
                raise Malformed(f"{named(self.kind)}: {name} {error}") from None
        return values

    def read(self, values: list[Any]) -> None:
        """In place, from the wire to those of a frame; Malformed."""
        if self._is_plain and list(map(type, values)) == self._wire_types:
            is_good = not self._numbers or self._in_range(values)
            if is_good and (not self._words or self._in_words(values)):
                return
        for at, (name, bound) in enumerate(self.bounds):
            try:
                values[at] = bound.read(values[at])
            except Malformed as error:
                raise Malformed(f"{named(self.kind)}: {name} {error}") from None

    def _in_range(self, values: list[Any]) -> bool:
        for at, least, most in self._numbers:  # noqa: SIM110  # a generator takes twice as long
            if not least <= values[at] <= most:
                return False
        return True

    def _in_words(self, values: list[Any]) -> bool:
        for at, words in self._words:
            word = words.get(values[at])
            if word is None:
                return False
            values[at] = word
        return True


def _type_in_frame(bound: Bound) -> type:
    return bound.of if isinstance(bound, Choice) else _type_on_wire(bound)


def _type_on_wire(bound: Bound) -> type:
    if isinstance(bound, Number):
        return int
    return bool if isinstance(bound, Flag) else str


_SHAPES: Final = [_Shape(number, kind) for number, kind in enumerate(KINDS)]
_SHAPE_OF: Final = {each.kind: each for each in _SHAPES}


def encode(frame: Frame, number: int) -> bytes:
    """The message for a frame that is the so-manieth on its connection."""
    shape = _SHAPE_OF[type(frame)]
    values = shape.write(frame)
    if shape.checks:
        frame.check()
    head: bytes = _pack([shape.number, number, *values])
    if shape.carries:
        return b"".join((LENGTH.pack(len(head)), head, frame.body))  # type: ignore[attr-defined]
    return LENGTH.pack(len(head)) + head


def decode(message: Body, frame_bytes: int) -> tuple[int, Frame]:
    """The number of a frame and the frame; Malformed, and no other error, says what is wrong."""
    whole = message if type(message) is memoryview else memoryview(message)
    size = len(whole) - LENGTH_BYTES
    length = _length_at(whole)[0] if size >= 0 else 0
    if not 0 < length <= min(HEAD_BYTES_MAX, size) or size > frame_bytes:
        raise Malformed(f"a frame with a head of {length} bytes and {size} bytes in all")
    end = LENGTH_BYTES + length
    try:
        values = msgpack.unpackb(
            whole[LENGTH_BYTES:end],
            max_array_len=VALUES_MAX,
            max_map_len=0,
            max_ext_len=0,
            max_str_len=HEAD_BYTES_MAX,
            max_bin_len=HEAD_BYTES_MAX,
        )
    except _NOT_MESSAGEPACK as error:
        raise Malformed(f"the head of a frame is not MessagePack: {error}") from None
    if type(values) is not list or len(values) < 2:
        raise Malformed("the head of a frame is no list of kind, number and fields")
    kind, number = values[0], values[1]
    if type(kind) is not int or not 0 <= kind < len(_SHAPES):
        raise Malformed(f"there is no kind of frames {shown(kind)}")
    shape = _SHAPES[kind]
    if type(number) is not int or not 0 <= number <= COUNT_MAX:
        raise Malformed(f"{named(shape.kind)}: the number of the frame is no number")
    if length < size and not shape.carries:
        raise Malformed(f"{named(shape.kind)}: {size - length} bytes behind the head")
    del values[:2]
    if len(values) != len(shape.bounds):
        _grown(shape, values)
    shape.read(values)
    if shape.carries:
        values.append(whole[end:])  # it is the last field
    frame: Frame = shape.make(*values)
    if shape.checks:
        _check(shape, frame)
    return number, frame


def _grown(shape: _Shape, values: list[Any]) -> None:
    """A newer version may have more fields."""
    many = len(shape.bounds)
    if len(values) < many or not shape.grows:
        raise Malformed(f"{named(shape.kind)}: {len(values)} fields, not {many}")
    del values[many:]


def _check(shape: _Shape, frame: Frame) -> None:
    try:
        frame.check()
    except Malformed as error:
        raise Malformed(f"{named(shape.kind)}: {error}") from None
