"""Fields of frames: what values each may have, on the wire and in a frame."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from shmbroker.netbridge.wire.malformed import Malformed


class Bound:
    """The values that a field may have."""

    def read(self, value: object) -> object:
        """The value of a field, as it came; Malformed says what was expected."""
        raise NotImplementedError

    def write(self, value: Any) -> object:
        """The same value for the wire."""
        self.read(value)
        return value


@dataclass(frozen=True, slots=True)
class Number(Bound):
    least: int
    most: int

    def read(self, value: object) -> int:
        if type(value) is not int:
            raise Malformed(f"is {type(value).__name__}, not a number")
        if not self.least <= value <= self.most:
            raise Malformed(f"is {value}, not {self.least} to {self.most}")
        return value

    def write(self, value: Any) -> int:
        return self.read(value)


@dataclass(frozen=True, slots=True)
class Flag(Bound):
    def read(self, value: object) -> bool:
        if type(value) is not bool:
            raise Malformed(f"is {type(value).__name__}, not true or false")
        return value

    def write(self, value: Any) -> bool:
        return self.read(value)


@dataclass(frozen=True, slots=True)
class Text(Bound):
    most: int
    least: int = 0

    def read(self, value: object) -> str:
        if type(value) is not str:
            raise Malformed(f"is {type(value).__name__}, not text")
        try:
            length = len(value.encode())
        except UnicodeEncodeError:
            raise Malformed("is text that is not UTF-8") from None
        if not self.least <= length <= self.most:
            raise Malformed(f"has {length} bytes, not {self.least} to {self.most}")
        return value


@dataclass(frozen=True, slots=True)
class Octets(Bound):
    least: int
    most: int

    def read(self, value: object) -> bytes:
        if type(value) is not bytes:
            raise Malformed(f"is {type(value).__name__}, not bytes")
        if not self.least <= len(value) <= self.most:
            raise Malformed(f"has {len(value)} bytes, not {self.least} to {self.most}")
        return value


@dataclass(frozen=True, slots=True)
class Choice(Bound):
    of: type[Enum]

    def read(self, value: object) -> Enum:
        if isinstance(value, self.of):
            return value
        if not isinstance(value, list):  # an Enum's error shows it, however deep it is
            with suppress(ValueError):
                return self.of(value)
        allowed = ", ".join(str(each.value) for each in self.of)
        raise Malformed(f"is none of {allowed}")

    def write(self, value: Any) -> object:
        return self.read(value).value


NAME_BYTES_MAX = 255
URI_BYTES_MAX = 1024
REASON_BYTES_MAX = 512
