"""What a replica follows, as its queue keeps it: the address of a broker, and an identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgpack

from shmbroker.core.layout import REPLICA_OF_BYTES_MAX

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Source:
    plan: str
    """Where the other broker is, as it was typed."""
    identity: bytes
    """Of the queue there."""

    def packed(self) -> bytes:
        """ValueError: it is too long."""
        made: bytes = msgpack.packb([VERSION, self.plan, self.identity])
        if len(made) > REPLICA_OF_BYTES_MAX:
            raise ValueError(f"an address of at most {REPLICA_OF_BYTES_MAX - 24} bytes")
        return made


def unpacked(found: bytes) -> Source | None:
    """None: it is of a later version, or damaged."""
    try:
        version, plan, identity = msgpack.unpackb(found)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException):
        return None
    is_known = version == VERSION and isinstance(plan, str) and isinstance(identity, bytes)
    return Source(plan, identity) if is_known else None
