"""The memory that interpreted kernels work on: named 64-bit words at addresses.

What a word is for decides what an operation on it means:

    SHARED      every operation is a step: others may run before it
    BULK        bodies of messages: loads and stores happen at once with the step before them
                (nobody else looks at a chunk that is not published; the invariants check that)
    CONSTANT    written by the set-up only; loads are no steps
    BLIND       counters for people to look at: written, never read, so not part of the state

Private memory of an actor has no names: all words from PRIVATE_AT on, zero at first.
An address that is none of these, or not a multiple of 8, is a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.explore.operation import Violation

SHARED: Final = 0
BULK: Final = 1
CONSTANT: Final = 2
BLIND: Final = 3

PRIVATE_AT: Final = 1 << 40
PRIVATE_BYTES: Final = 1 << 20

Decode = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Word:
    """One named word."""

    name: str
    address: int
    role: int
    decode: Decode


class Memory:
    """Which words there are; their values are in the states."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.roles: dict[int, int] = {}
        self.index: dict[int, int] = {}
        self.constants: dict[int, int] = {}
        self.frozen = False
        """The set-up is over: constants are constant."""

    def word(self, name: str, address: int, role: int = SHARED, decode: Decode = str) -> int:
        """Add a word; its index in the states' memory."""
        if address & 7 or address in self.roles:
            raise ValueError(f"{name}: {address:#x} is unaligned or taken")
        index = len(self.words)
        self.words.append(Word(name, address, role, decode))
        self.roles[address] = role
        self.index[address] = index
        return index

    def role(self, address: int) -> int:
        found = self.roles.get(address)
        if found is None:
            raise Violation(f"{self.name(address)} is outside of the known memory")
        return found

    def name(self, address: int) -> str:
        index = self.index.get(address)
        if index is not None:
            return self.words[index].name
        below = [each for each in self.words if each.address <= address]
        nearest = max(below, key=lambda each: each.address, default=None)
        if nearest is None:
            return f"address {address:#x}"
        return f"address {address:#x} ({nearest.name} + {address - nearest.address})"

    def describe(self, address: int, value: int) -> str:
        index = self.index.get(address)
        return str(value) if index is None else self.words[index].decode(value)


def is_private(address: int) -> bool:
    return PRIVATE_AT <= address < PRIVATE_AT + PRIVATE_BYTES and not address & 7
