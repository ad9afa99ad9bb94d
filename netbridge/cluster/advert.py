"""What a broker tells the others of its vhost: each queue, and each binding."""

from __future__ import annotations

from dataclasses import dataclass

WORDS_BYTES = 24
"""At most, of a row on the wire: its numbers, flags and the lengths of its texts."""
SELECTORS_MAX = 8
"""Of a queue; one of which more are told counts as if everything was taken from it."""


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    is_durable: bool
    is_consumed: bool
    """Somebody takes from it.  How many do changes more often, and nobody elsewhere needs it."""
    may_be_balanced: bool = True
    """One of this name at several nodes is one queue; else it is of its node alone."""
    selectors: tuple[str, ...] = ()
    """Of its consumers, if all that is taken is what one of these matches."""


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


def size_of(key: Key, advert: Advert | None) -> int:
    """Bytes of a row on the wire, or a few more."""
    if isinstance(key, str):
        selectors = advert.selectors if isinstance(advert, Queue) else ()
        return WORDS_BYTES + len(key.encode()) + sum(4 + len(each.encode()) for each in selectors)
    texts = (key.exchange, key.kind, key.destination, key.key)
    return WORDS_BYTES + sum(len(each.encode()) for each in texts) + len(key.arguments)
