"""Words that are the body of a frame, to bytes and back.

A word is a MessagePack array of the kind and its fields, in their order.  Everything has bounds,
which are the same for who writes and who reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

import msgpack

from shmbroker.netbridge.wire.field import Bound, Number
from shmbroker.netbridge.wire.frame import COUNT_MAX, Body
from shmbroker.netbridge.wire.malformed import Malformed, shown

BYTES_MAX: Final = 32 << 10
ARRAY_MAX: Final = 16
COUNT: Final = Number(0, COUNT_MAX)
_NOT_MESSAGEPACK: Final = (
    ValueError,  # with it: too deep, too long, no UTF-8, bytes behind it
    TypeError,
    OverflowError,
    msgpack.exceptions.UnpackException,
)


class Made(Bound):
    """An object with fields: an array, or a map by their names."""

    def __init__(self, kind: type[Any], *bounds: Bound) -> None:
        self._kind = kind
        self._names = tuple(each.name for each in fields(kind))
        self._bounds = bounds
        assert len(self._names) == len(bounds)

    def read(self, value: object) -> Any:
        if type(value) is dict:
            if value.keys() != set(self._names):
                raise Malformed(f"has not the fields {', '.join(self._names)}")
            value = [value[name] for name in self._names]
        if type(value) is not list or len(value) != len(self._names):
            raise Malformed(f"is no list of {', '.join(self._names)}")
        return self._kind(*_each(self._names, self._bounds, value))

    def write(self, value: Any) -> list[object]:
        values = [getattr(value, name) for name in self._names]
        return _each(self._names, self._bounds, values, is_written=True)


class Many(Bound):
    def __init__(self, of: Bound, most: int) -> None:
        self._of, self._most = of, most

    def read(self, value: object) -> tuple[object, ...]:
        if type(value) is not list or len(value) > self._most:
            raise Malformed(f"is no list of up to {self._most}")
        return tuple(self._of.read(each) for each in value)

    def write(self, value: Any) -> list[object]:
        if len(value) > self._most:
            raise Malformed(f"are {len(value)}, and may be {self._most}")
        return [self._of.write(each) for each in value]


class Pair(Bound):
    def __init__(self, first: Bound, second: Bound) -> None:
        self._both = first, second

    def read(self, value: object) -> tuple[object, ...]:
        if type(value) is not list or len(value) != 2:
            raise Malformed("is no pair")
        return tuple(_each(("first", "second"), self._both, value))

    def write(self, value: Any) -> list[object]:
        return _each(("first", "second"), self._both, value, is_written=True)


class Perhaps(Bound):
    """Or nothing."""

    def __init__(self, of: Bound) -> None:
        self._of = of

    def read(self, value: object) -> object:
        return None if value is None else self._of.read(value)

    def write(self, value: Any) -> object:
        return None if value is None else self._of.write(value)


def _each(
    names: Sequence[str],
    bounds: Sequence[Bound],
    values: Sequence[Any],
    *,
    is_written: bool = False,
) -> list[object]:
    found = []
    for name, bound, value in zip(names, bounds, values, strict=True):
        try:
            found.append(bound.write(value) if is_written else bound.read(value))
        except Malformed as error:
            raise Malformed(f"{name} {error}") from None
    return found


class Vocabulary:
    """The words of one kind of talk, by numbers that never change: their places in it."""

    def __init__(
        self, name: str, *words: tuple[type[Any], Made], array_max: int = ARRAY_MAX
    ) -> None:
        """`name`: of one of its words, in an error; `array_max`: items of the longest list."""
        self._name, self._words, self._array_max = name, words, array_max
        self._number_of = {kind: number for number, (kind, _) in enumerate(words)}

    def encode(self, what: Any) -> bytes:
        number = self._number_of[type(what)]
        packed: bytes = msgpack.packb([number, *self._words[number][1].write(what)])
        return packed

    def decode(self, body: Body) -> Any:
        """Malformed, and no other error, says what is wrong."""
        values = unpacked(body, self._name, self._array_max)
        number = values.pop(0) if type(values) is list and values else None
        if type(number) is not int or not 0 <= number < len(self._words):
            raise Malformed(f"{self._name} of kind {shown(number)}")
        kind, shape = self._words[number]
        try:
            return shape.read(values)
        except Malformed as error:
            raise Malformed(f"{kind.__name__.lower()}: {error}") from None

    def said_by(self, who: str, kinds: tuple[type[Any], ...], body: Body) -> Any:
        """One of these kinds: others are not for `who` to say."""
        found = self.decode(body)
        if not isinstance(found, kinds):
            raise Malformed(f"{who} says no {type(found).__name__.lower()}")
        return found


def unpacked(body: Body, name: str, array_max: int = ARRAY_MAX) -> Any:
    if len(body) > BYTES_MAX:
        raise Malformed(f"{name} of {len(body)} bytes")
    try:
        return msgpack.unpackb(
            body, max_array_len=array_max, max_map_len=0, max_ext_len=0, max_str_len=BYTES_MAX,
            max_bin_len=BYTES_MAX,
        )  # fmt: skip
    except _NOT_MESSAGEPACK as error:
        raise Malformed(f"{name} that is not MessagePack: {error}") from None
