"""The options of ZooKeeper as a lock manager: [ha.zookeeper]."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import FOLDER, TEXT, Kind, duration
from shmbroker.ipc.instance.config.option import Default, Option

TABLE: Final = "ha.zookeeper"


def _servers(given: object) -> str:
    servers = given.split(",") if isinstance(given, str) else []
    if not servers or not all(re.fullmatch(r"\S+:\d{1,5}", each.strip()) for each in servers):
        raise ValueError('servers, as in "one:2181,two:2181,three:2181"')
    return ",".join(each.strip() for each in servers)


def _namespace(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"(/[\w.-]+)+", given):
        raise ValueError('a path in ZooKeeper, as in "/shmbroker"')
    return given


def _row(name: str, kind: Kind, default: Default | None, help: str) -> Option:
    return Option(TABLE, name, kind, default, help)


# fmt: off
ZOOKEEPER: Final = (
    _row("connect", Kind("servers", _servers), None,
         "The servers; needed where ha.replication.lock-manager is zookeeper."),
    _row("namespace", Kind("path", _namespace), "/shmbroker",
         "Below it there is one node for each node id.  The same at all members."),
    _row("session-timeout", duration(1, 60), "6s",
         "Takes the place of the lease: a takeover after a crash waits for it."),
    _row("credentials", TEXT, None,
         "A [credentials.NAME] whose user and password are those of the digest authentication; "
         "then nobody else can read or write what is there."),
    _row("tls-ca", FOLDER, "", "The certificates that servers must have one of; with it TLS is spoken."),  # noqa: E501
    _row("tls-cert", FOLDER, "", "The certificate of this member, if the servers ask for one."),
    _row("tls-key", FOLDER, "", "Its key."),
)
# fmt: on


class Refused(ValueError):
    """Options that are missing; the message says which."""


@dataclass(frozen=True, slots=True)
class ZooKeeperOptions:
    """[ha.zookeeper], checked."""

    connect: str
    namespace: str
    session_timeout: float
    credentials: str | None
    tls_ca: str
    tls_cert: str
    tls_key: str

    @property
    def has_one_server(self) -> bool:
        return "," not in self.connect


def zookeeper(given: dict[str, Any]) -> ZooKeeperOptions:
    """`given`: values by name, as far as they were given."""
    values: dict[str, Any] = {
        each.name: None if each.default is None else each.value_of(each.default)
        for each in ZOOKEEPER
    }
    values |= given
    if values["connect"] is None:
        raise Refused(
            'ha.replication.lock-manager is "zookeeper", and ha.zookeeper.connect does not name '
            'its servers, as in "one:2181,two:2181,three:2181"'
        )
    if bool(values["tls-cert"]) != bool(values["tls-key"]):
        raise Refused("ha.zookeeper.tls-cert and tls-key go together")
    return ZooKeeperOptions(**{name.replace("-", "_"): value for name, value in values.items()})
