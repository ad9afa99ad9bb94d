"""The kinds of exchanges, as the catalog numbers them."""

from __future__ import annotations

from shmbroker.ipc.base.errors import Damaged

KINDS = ("direct", "topic", "fanout", "headers")


def kind_of(number: int, name: str) -> str:
    """The kind of an exchange, as its entry in the catalog numbers it."""
    if number not in range(len(KINDS)):
        raise Damaged(f"exchange {name!r} has kind {number}, which is none: delete the vhost")
    return KINDS[number]
