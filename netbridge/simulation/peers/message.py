"""A message of independent brokers, as a record of the journal's format.

Where a message of an agent was is with it on its way, as `ipc/sink/journey.c` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shmbroker.netbridge.simulation.record import bodies, record_of


@dataclass(frozen=True, slots=True)
class Message:
    number: int
    """No two messages have the same."""
    key: str
    """Of its binding, or the name of its queue."""
    visited: tuple[str, ...] = ()
    """Nodes where it was published, before the one that sends it."""
    comes_back: bool = False
    """Nobody has it where it was published."""
    is_mandatory: bool = False
    has_travelled: bool = False
    """It has come over a network link."""

    @property
    def plain(self) -> Message:
        """As consumers have it."""
        return replace(self, visited=(), comes_back=False)

    def record(self, position: int) -> bytes:
        flags = [self.comes_back, self.is_mandatory, self.has_travelled]
        said = [self.number, self.key, self.visited, *flags]
        return record_of(position, json.dumps(said).encode())


def messages(buffer: bytes | memoryview) -> Iterator[tuple[int, int, Message]]:
    """Of each record: its bytes, the position, and the message."""
    for size, position, body in bodies(buffer):
        number, key, visited, *flags = json.loads(bytes(body))
        yield size, position, Message(number, key, tuple(visited), *flags)
