"""A binding as C takes it: its ends are named, or given as objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.exchange.exchange import Exchange
from shmbroker.ipc.message.properties import pack
from shmbroker.ipc.queue.queue import Queue


def named(each: Queue | Exchange | str) -> str:
    """The name of what is given as an object, or by its name."""
    return each.name if isinstance(each, (Queue, Exchange)) else each


def binding_for_c(
    exchange: Exchange | str,
    destination: Queue | Exchange | str,
    key: str,
    arguments: Mapping[str, Any] | None,
    match: str,
    to: str | None,
) -> tuple[Any, tuple[Any, ...]]:
    """A binding for C, and what must live as long as it."""
    if to is None:
        to = "exchange" if isinstance(destination, Exchange) else "queue"
    if match not in ("all", "any") or to not in ("queue", "exchange"):
        raise InvalidArgument(f"match is all or any, to is queue or exchange: {match}, {to}")
    packed = pack(arguments)
    texts = [name_bytes(each) for each in (named(exchange), named(destination), key)]
    kept = tuple(ffi.from_buffer(each) if each else ffi.NULL for each in (*texts, packed))
    names = tuple(ffi.new("char[]", each) for each in texts[:2])
    binding = ffi.new(
        "sb_binding *",
        {
            "exchange": names[0],
            "destination": names[1],
            "to_exchange": to == "exchange",
            "match_any": match == "any",
            "key": kept[2],
            "key_length": len(texts[2]),
            "arguments": kept[3],
            "arguments_length": len(packed),
        },
    )
    return binding, (kept, names, texts, packed)
