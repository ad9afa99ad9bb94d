"""What people see of a cluster, as one of its members knows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.instance.config.config import empty_tables, read
from shmbroker.ipc.message.properties import unpack
from shmbroker.netbridge.cluster.advert import Binding, Queue
from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.cluster.said import Announcement
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.election.threshold import IMPOSSIBLE

FILE: Final = "cluster"
"""In run/."""
QUEUES_FILE: Final = "cluster-queues"
"""Beside it, written when somebody asks: it may be long."""
GROUPS_FILE: Final = "cluster-groups"
"""The same, of groups."""


def is_configured(folder: Path, told: Mapping[str, Any]) -> bool:
    """What was said of a cluster stays in run/ when the broker leaves it."""
    table = f"cluster.{told.get('cluster')}"
    return table in empty_tables(folder) or any(key.startswith(f"{table}.") for key in read(folder))


def whole(name: str, machine: Membership, *, votes: bool) -> dict[str, Any]:
    me, count = machine.me, machine.count
    backups: dict[Node, dict[str, str]] = {}
    for (node, backup), each in sorted(machine.backups.items()):
        backups.setdefault(node, {})[backup] = each.uri
    nodes = [
        _row(each, backups.get(node, {}), *_reached(machine, node))
        for node, each in machine.lives.items()
    ]
    if me is not None and me.is_live:
        nodes.append(_row(me, backups.get(me.node, {}), "here", 0))
    return {
        "cluster": name,
        "node": "" if me is None else me.node.hex(),
        "standing": "unknown" if me is None else "live" if me.is_live else "backup",
        "votes": votes,
        "lives": count.lives,
        "needed": count.needed if count.needed < IMPOSSIBLE else None,
        "can-vote": machine.can_vote,
        "nodes": sorted(nodes, key=lambda each: (each["name"], each["node"])),
        "duplicates": [
            {"node": each.node.hex(), "name": each.name, "address": each.uri}
            for each in machine.duplicates
        ],
    }


def _reached(machine: Membership, node: Node) -> tuple[str, int]:
    """And over how many links; in a chain perhaps by others."""
    path = machine.paths.get(node)
    hops = 1 if path is None else path.hops
    if machine.is_there(node):
        return "up", hops
    if path is None:
        return "missing", hops
    return "up" if machine.next_hop(node) is not None else "too far", hops


def _row(of: Announcement, backups: dict[str, str], state: str, hops: int) -> dict[str, Any]:
    return {
        "node": of.node.hex(),
        "name": of.name,
        "address": of.uri,
        "state": state,
        "hops": hops,
        "epoch": of.epoch,
        "version": of.version,
        "group": list(of.group),
        "backups": backups,
    }


def queues(name: str, machine: Membership, given: Mapping[str, int]) -> dict[str, Any]:
    """Of all nodes, as each has told.

    `given`: of queues here, how many messages were redistributed since this broker is live.
    """
    rows: list[dict[str, Any]] = []
    bindings: list[dict[str, Any]] = []
    me = machine.me
    if me is not None and me.is_live:
        for advert in machine.adverts.board.adverts:
            row = _advert(me, "here", advert)
            if isinstance(advert, Queue):
                rows.append(row | {"redistributed": given.get(advert.name, 0)})
            else:
                bindings.append(row)
    for node, live in machine.lives.items():
        state, _ = _reached(machine, node)
        copy = machine.adverts.of(node)
        rows += (_advert(live, state, each) for each in copy.queues.values())
        bindings += (_advert(live, state, each) for each in copy.bindings)
    return {
        "cluster": name,
        "queues": sorted(rows, key=lambda each: (each["queue"], each["name"], each["node"])),
        "bindings": sorted(
            bindings, key=lambda each: (each["exchange"], each["destination"], each["name"])
        ),
    }


def _advert(of: Announcement, state: str, advert: Queue | Binding) -> dict[str, Any]:
    whose = {"node": of.node.hex(), "name": of.name, "state": state}
    if isinstance(advert, Queue):
        return {
            "queue": advert.name,
            **whose,
            "durable": advert.is_durable,
            "consumed": advert.is_consumed,
            "selectors": list(advert.selectors),
        }
    return {
        "exchange": advert.exchange,
        "kind": advert.kind,
        "destination": advert.destination,
        "to": "exchange" if advert.is_to_exchange else "queue",
        **whose,
        "key": advert.key,
        "arguments": _told(advert.arguments),
        "match": "any" if advert.matches_any else "all",
        "exclusive": advert.is_exclusive,
    }


def _told(arguments: bytes) -> dict[str, object]:
    """As JSON has it: bytes, say, are shown as Python writes them."""
    try:
        found = unpack(arguments)
    except Error:  # of another broker
        return {}
    return {str(name): _plain(value) for name, value in found.items()}


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float) else repr(value)
