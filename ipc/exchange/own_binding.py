"""Bindings of the cluster's own, beside those of users: where other nodes want what is published.

Each leads to a queue towards another node, with a target that says where it goes there, or to a
queue here that several nodes have (BINDING_HERE).  They are in the catalog and the journal as any
binding, and in no list for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.ipc._native import lib
from shmbroker.ipc.exchange.binding import binding_for_c
from shmbroker.ipc.message.properties import unpack

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


@dataclass(frozen=True, slots=True)
class OwnBinding:
    exchange: str
    queue: str
    key: str
    arguments: bytes
    """A MessagePack map; empty: none."""
    matches_any: bool
    target: int


def own_bindings(broker: Broker) -> set[OwnBinding]:
    found = ((each.target, each.binding, each.packed) for each in broker._catalog.own_bindings())
    return {
        OwnBinding(at.exchange, at.destination, at.key, packed, at.match == "any", target)
        for target, at, packed in found
    }


def bind_own(broker: Broker, binding: OwnBinding) -> None:
    """Twice is once."""
    _change(broker, binding, removes=False)


def unbind_own(broker: Broker, binding: OwnBinding) -> None:
    """NotFound: it, or what it bound, is not there any more."""
    _change(broker, binding, removes=True)


def _change(broker: Broker, binding: OwnBinding, *, removes: bool) -> None:
    arguments: Mapping[str, Any] | None = unpack(binding.arguments) if binding.arguments else None
    match = "any" if binding.matches_any else "all"
    made, _kept = binding_for_c(
        binding.exchange, binding.queue, binding.key, arguments, match, "queue"
    )
    code = lib.sb_bind_own(broker._connection, made, binding.target, removes)
    broker._check(code, f"binding {binding.queue!r} to {binding.exchange!r} for the cluster")
