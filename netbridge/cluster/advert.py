"""What a broker tells the others of its vhost: each queue, and each binding."""

from __future__ import annotations

from dataclasses import dataclass

WORDS_BYTES = 24
"""At most, of a row on the wire: its numbers, flags and the lengths of its texts."""


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    is_durable: bool
    is_consumed: bool
    """Somebody takes from it.  How many do changes more often, and nobody elsewhere needs it."""
    may_be_balanced: bool = True
    """One of this name at several nodes is one queue; else it is of its node alone."""


@dataclass(frozen=True, slots=True)
class Binding:
    exchange: str
    kind: str
    """Of the exchange."""
    destination: str
    is_to_exchange: bool
    key: str
    arguments: bytes
    """A MessagePack map."""
    matches_any: bool
    """Of its arguments; else all."""
    is_exclusive: bool


Advert = Queue | Binding
Key = str | Binding
"""Which one it is: of a queue its name.  A binding never changes."""


def key_of(advert: Advert) -> Key:
    return advert.name if isinstance(advert, Queue) else advert


def size_of(key: Key) -> int:
    """Bytes of a row on the wire, or a few more."""
    if isinstance(key, str):
        return WORDS_BYTES + len(key.encode())
    texts = (key.exchange, key.kind, key.destination, key.key)
    return WORDS_BYTES + sum(len(each.encode()) for each in texts) + len(key.arguments)
