"""The configuration of a backup that a live runs for another node: that of the live, and what
differs.

It is written whole into the folder of the backup, so paths in it are absolute, and what the
environment or a command line of the live has said stands in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from shmbroker.netbridge.cluster.hosting import name_of
from shmbroker.netbridge.cluster.option import ROOT, Refused
from shmbroker.netbridge.cluster.said import Requests
from shmbroker.netbridge.config.colocated import PORT_MAX, Colocated, group_of
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.wire.words import Role

HOST: Final = "colocated-host"
"""The connector by which it reaches who runs it."""
PATHS: Final = ("security.key-file", "security.known-keys", "console.tls-cert", "console.tls-key")
CONSOLE: Final = "console.listen"
REGISTRY: Final = "registry"
ELSEWHERE: Final = ("ha.members", "store.journal", "store.pages", "spool.path")
OF_HOST: Final = ("ha.scale-down.", "console.others")
"""Of the live alone."""
DRAINS_TO: Final = "ha.scale-down.connectors"
REPLICA: Final = Role.REPLICA.value
LOG: Final = "log/shmbroker.log"
Given = dict[str, object]


def moved(uri: Single, by: int) -> Single:
    return replace(uri, port=port_moved(uri.port, by))


def port_moved(port: int, by: int) -> int:
    """Refused: there is no such port."""
    if port + by > PORT_MAX:
        raise Refused(f"port {port} + {by} is above {PORT_MAX}")
    return port + by


@dataclass(frozen=True, slots=True)
class Host:
    """Who runs it."""

    folder: Path
    connector: Single
    """Where members of its cluster reach it."""
    node: Node

    @property
    def mark(self) -> str:
        """Of names that no other host gives."""
        return self.node.hex()[:8]


def given_of(found: Colocated, host: Host, number: int, wanted: Requests) -> Given:
    """Refused says why it cannot be."""
    folder, name = host.folder, name_of(number)
    given = {
        key: _moved(key, value, found, number)
        for key, value in found.inherited.items()
        if key not in ELSEWHERE and not key.startswith(OF_HOST)
    }
    given = {key: _absolute(key, value, folder) for key, value in given.items()}
    given |= _knowing(given, host.connector)
    spool = found.inherited.get("spool.path")
    if isinstance(spool, str) and spool:
        given["spool.path"] = str(folder / spool / name)
    given |= found.backup
    given |= _into_host(given, found, host.connector)
    given |= {
        "instance.name": name,
        "instance.vhost": wanted.vhost,
        "instance.network-vhost": wanted.network_vhost,
        "log.path": LOG,
        "ha.policy": wanted.policy,
        "ha.role": "backup",
        "ha.restart-backup": False,
        "store.path": wanted.store,
        "store.journal": wanted.journal,
        "store.pages": wanted.pages,
    }
    return given if wanted.store else given | _member(given, found, host, name, wanted)


def _into_host(given: Mapping[str, object], found: Colocated, host: Single) -> Given:
    """Where it gives all away to who runs it, that is named by its own connector there."""
    names = given.get(DRAINS_TO)
    if not isinstance(names, list):
        return {}
    uris = {each: single(str(found.inherited[f"connectors.{each}.uri"])) for each in names}
    named = [HOST if uris[each] == host else each for each in names]
    return {DRAINS_TO: named, f"connectors.{HOST}.uri": str(host)} if HOST in named else {}


def _member(
    given: Mapping[str, object], found: Colocated, host: Host, name: str, wanted: Requests
) -> Given:
    """Of a replicated node.  Two of its members never have one name, on whatever host they are: a
    vote is about a name."""
    me = f"{name}@{host.mark}"
    store = found.inherited.get("store.path", "data")
    return {
        "instance.name": me,
        "instance.vhost": f"{wanted.vhost}-at-{host.mark}",
        "store.path": f"{host.folder / str(store)}-{name}",
        "ha.members": [f"{wanted.name}={wanted.member}", f"{me}={_listening(given, host)}"],
        "ha.replication.group-name": group_of(wanted.group, wanted.name),
    }


def _listening(given: Mapping[str, object], host: Host) -> str:
    """Where members reach it; who asked does not connect to it, but is connected to."""
    for key, value in given.items():
        if key.startswith("acceptors.") and key.endswith(".roles") and value == [REPLICA]:
            uri = single(str(given[key.removesuffix("roles") + "uri"]))
            return f"tcp://{host.connector.host}:{uri.port}"
    raise Refused('it has no [acceptors.NAME] with roles = ["replica"]')


def _moved(key: str, value: object, found: Colocated, number: int) -> object:
    table, _, rest = key.partition(".")
    name = rest.rpartition(".")[0]
    if key == CONSOLE:
        host, _, port = str(value).rpartition(":")
        return f"{host}:{port_moved(int(port), number * found.offset) if int(port) else 0}"
    is_address = table in ("connectors", "acceptors") and key.endswith(".uri")
    if not is_address or not isinstance(value, str):
        return value
    if table == "connectors" and name in found.excludes:
        return value
    return str(moved(single(value), number * found.offset))


def _knowing(given: Mapping[str, object], host: Single) -> Given:
    """Who runs it is somebody it looks for, where it looks for some by their addresses."""
    more: Given = {}
    for key, value in given.items():
        if key.startswith(f"{ROOT}.") and key.endswith(".static-connectors"):
            assert isinstance(value, list), "the configuration was checked"
            more |= {key: [*value, HOST], f"connectors.{HOST}.uri": str(host)}
    return more


def _absolute(key: str, value: object, folder: Path) -> object:
    if isinstance(value, list):
        return [_absolute(key, each, folder) for each in value]
    if isinstance(value, Mapping) and isinstance(value.get("file"), str):
        return {"file": str(folder / value["file"])}
    is_path = key in PATHS or key.endswith(f".{REGISTRY}")
    return str(folder / value) if is_path and isinstance(value, str) and value else value
