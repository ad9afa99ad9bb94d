"""Bindings of the broker's own, beside those of users: where others want what is published.

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
    forwards: int = 0
    """FORWARD_*: it takes what an agent forwards, whatever its key; 0: it is none of an agent."""


def own_bindings(broker: Broker) -> set[OwnBinding]:
    return {
        OwnBinding(
            each.binding.exchange, each.binding.destination, each.binding.key, each.packed,
            each.binding.match == "any", each.target, each.forwards,
        )
        for each in broker._catalog.own_bindings()
    }  # fmt: skip


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
    if binding.forwards:
        made.match_any = binding.forwards
    code = lib.sb_bind_own(broker._connection, made, binding.target, removes)
    broker._check(code, f"binding {binding.queue!r} to {binding.exchange!r} for the broker")
