"""Bindings of the broker's own, beside those of users: where others want what is published.

Each leads to a queue towards another node, with a target that says where it goes there, or to a
queue here that several nodes have (BINDING_HERE).  They are in the catalog and the journal as any
binding, and in no list for people.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error
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


def change_own(
    broker: Broker, wanted: Sequence[OwnBinding], ended: Sequence[OwnBinding]
) -> dict[OwnBinding, Error]:
    """All at one moment: who publishes follows what was before, or all of this; both, if they are
    so many that nobody waits for the end.  What has failed, and why."""
    failed: dict[OwnBinding, Error] = {}
    made: dict[OwnBinding, tuple[Any, Any]] = {}
    for each in (*wanted, *ended):  # what has no room in the table is tried once more
        try:
            made[each] = _for_c(each)
        except Error as error:  # told by another broker, and no binding
            failed[each] = error
    ends = set(ended)
    changes = ffi.new("sb_own_change[]", len(made))
    for change, (each, (binding, _)) in zip(changes, made.items(), strict=True):
        change.binding, change.target = binding[0], each.target
        change.removes = each in ends
    code = lib.sb_bind_own_all(broker._connection, changes, len(made))
    refused = made if code < 0 else [
        each for each, change in zip(made, changes, strict=True) if change.code < 0
    ]  # fmt: skip
    return failed | dict(_failed(broker, refused, ends))


def _failed(
    broker: Broker, refused: Iterable[OwnBinding], ended: Container[OwnBinding]
) -> Iterator[tuple[OwnBinding, Error]]:
    """Tried once more, each by itself: it says why."""
    for each in refused:
        try:
            _change(broker, each, removes=each in ended)
        except Error as error:
            yield each, error


def _change(broker: Broker, binding: OwnBinding, *, removes: bool) -> None:
    made, _kept = _for_c(binding)
    code = lib.sb_bind_own(broker._connection, made, binding.target, removes)
    broker._check(code, f"binding {binding.queue!r} to {binding.exchange!r} for the broker")


def _for_c(binding: OwnBinding) -> tuple[Any, Any]:
    """And what must live as long as it."""
    arguments: Mapping[str, Any] | None = unpack(binding.arguments) if binding.arguments else None
    match = "any" if binding.matches_any else "all"
    made, kept = binding_for_c(
        binding.exchange, binding.queue, binding.key, arguments, match, "queue"
    )
    if binding.forwards:
        made.match_any = binding.forwards
    return made, kept
