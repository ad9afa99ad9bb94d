"""What people see of a cluster, as one of its members knows it."""

from __future__ import annotations

from typing import Any, Final

from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.cluster.said import Announcement
from shmbroker.netbridge.election.threshold import IMPOSSIBLE

FILE: Final = "cluster"
"""In run/."""


def whole(name: str, machine: Membership, *, votes: bool) -> dict[str, Any]:
    me, count = machine.me, machine.count
    nodes = [
        _row(machine, each, "up" if machine.is_there(node) else "missing", 1)
        for node, each in machine.lives.items()
    ]
    if me is not None and me.is_live:
        nodes.append(_row(machine, me, "here", 0))
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


def _row(machine: Membership, of: Announcement, state: str, hops: int) -> dict[str, Any]:
    backups = {name: each.uri for (node, name), each in machine.backups.items() if node == of.node}
    return {
        "node": of.node.hex(),
        "name": of.name,
        "address": of.uri,
        "state": state,
        "hops": hops,
        "epoch": of.epoch,
        "version": of.version,
        "group": list(of.group),
        "backups": dict(sorted(backups.items())),
    }
