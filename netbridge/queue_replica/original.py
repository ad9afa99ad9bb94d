"""What the broker of an original decides when somebody wants to follow it."""

from __future__ import annotations

from shmbroker.netbridge.queue_replica.told import Follow


def begins_at(wish: Follow, identity: bytes, head: int, tail: int) -> int:
    """From which position on records come: from where the replica is, if it has followed this
    queue, and has no position that this one never had; else all of it comes."""
    goes_on = wish.identity == identity and wish.next <= tail
    return wish.next if goes_on else head
