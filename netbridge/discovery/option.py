"""The options of discovery: [broadcast.NAME], which announces, and [discovery.NAME]."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import TEXT, Kind, choice, count, duration, is_integer
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.cluster.option import Cluster
from shmbroker.netbridge.discovery.codec import URI_BYTES_MAX
from shmbroker.netbridge.plan.uri import Found, Single

BROADCAST: Final = "broadcast"
DISCOVERY: Final = "discovery"
UDP: Final = "udp"
REGISTRY: Final = "registry"
HOUR: Final = 3600.0
PERIOD: Final = duration(0.1, HOUR)
PORT_MAX: Final = 65535
ANONYMOUS: Final = -1
CHANNEL: Final = "shmbroker"
GROUP_MIN: Final = IPv4Address("224.0.0.1")
GROUP_MAX: Final = IPv4Address("239.255.255.255")
OF_UDP: Final = ("group-address", "group-port", "local-bind-address", "local-bind-port")
OF_REGISTRY: Final = ("registry", "channel")


class Refused(ValueError):
    """Options that are missing or do not go together; the message says which."""


def group_address(given: object) -> str:
    try:
        found = IPv4Address(given if isinstance(given, str) else "")
    except AddressValueError:
        found = None
    if found is None or not GROUP_MIN <= found <= GROUP_MAX:
        raise ValueError("an address of a multicast group, 224.0.0.1…239.255.255.255")
    return str(found)


def interface_address(given: object) -> str:
    try:
        found = IPv4Address(given if isinstance(given, str) else "")
    except AddressValueError:
        raise ValueError('the IPv4 address of an interface, as in "10.0.0.1"') from None
    return str(found)


def channel_name(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"\w[\w.-]{0,63}", given, re.A):
        raise ValueError("a name of up to 64 letters, digits, dots and dashes")
    return given


def _local_port(given: object) -> int:
    if not is_integer(given) or not (given == ANONYMOUS or 1 <= given <= PORT_MAX):  # type: ignore[operator]
        raise ValueError(f"a port in 1…{PORT_MAX}, or -1 for any")
    return int(given)  # type: ignore[call-overload, no-any-return]


GROUP: Final = Kind("address", group_address, "224.0.0.1…239.255.255.255")
INTERFACE: Final = Kind("address", interface_address)
NAME: Final = Kind("name", channel_name)
LOCAL_PORT: Final = Kind("port", _local_port, f"1…{PORT_MAX}, -1: any")


def _rows(root: str, *own: tuple[str, Kind, Default | None, str, bool]) -> tuple[Option, ...]:
    both: tuple[tuple[str, Kind, Default | None, str, bool], ...] = (
        ("type", choice(UDP, REGISTRY), UDP, "By multicast, or by files in a shared folder.",
         False),
        ("group-address", GROUP, None, "Of udp, required there: the multicast group.", False),
        ("group-port", count(1, PORT_MAX), None, "Of udp, required there: its port.", False),
        ("local-bind-address", INTERFACE, None,
         "Of udp: the address of the interface; any if left out.", False),
        ("registry", TEXT, None,
         "Of registry, required there: the shared folder, with one file for each broker.", False),
        ("channel", NAME, CHANNEL, "Of registry: which of its channels.", False),
    )  # fmt: skip
    return tuple(
        Option(f"{root}.NAME", name, kind, default, help, is_required, is_reloaded=True)
        for name, kind, default, help, is_required in (*both, *own)
    )


OF_WHOM: Final = "if left out: that of the cluster."
BROADCASTS: Final = _rows(
    BROADCAST,
    ("local-bind-port", LOCAL_PORT, ANONYMOUS, "Of udp: from which port; -1: any.", False),
    ("broadcast-period", PERIOD, "2s", "Between two announcements.", False),
    ("connector", TEXT, None, "The [connectors.NAME] that is announced.", True),
    ("credentials", TEXT, None,
     f"The [credentials.NAME] whose password signs; {OF_WHOM}", False),
)  # fmt: skip
DISCOVERIES: Final = _rows(
    DISCOVERY,
    ("refresh-timeout", PERIOD, "10s", "A broker that is not announced for so long is dropped.",
     False),
    ("credentials", TEXT, None,
     f"The [credentials.NAME] whose password has signed; {OF_WHOM}", False),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Means:
    """Where it is announced and heard."""

    type: str
    group: str = ""
    port: int = 0
    interface: str = ""
    """The address of one; empty: any."""
    registry: Path = Path()
    channel: str = ""

    @property
    def place(self) -> str:
        """The same for all who take part, whatever they call a folder."""
        if self.type == UDP:
            return f"{UDP} {self.group}:{self.port}"
        return f"{REGISTRY} {self.channel}"


@dataclass(frozen=True, slots=True)
class Broadcast:
    name: str
    means: Means
    local_port: int
    period: float
    connector: Single
    credentials: str


@dataclass(frozen=True, slots=True)
class Discovery:
    name: str
    means: Means
    refresh: float
    credentials: str
    """Empty: those of a program."""


def check(root: str, name: str, given: Mapping[str, Any]) -> None:
    """`given`: what the file says, before defaults; Refused."""
    table, type = f"[{root}.{name}]", given.get("type", UDP)
    others = OF_REGISTRY if type == UDP else OF_UDP
    for key in given:
        if key in others:
            raise Refused(f'{table} has {key}, which does not go with type = "{type}"')
    for key in ("group-address", "group-port") if type == UDP else ("registry",):
        if key not in given:
            raise Refused(f'{table} has no {key}, and type = "{type}" needs it')


def _means(values: Mapping[str, Any], folder: Path) -> Means:
    if values["type"] == REGISTRY:
        return Means(REGISTRY, registry=folder / values["registry"], channel=values["channel"])
    address = values["local-bind-address"] or ""
    return Means(UDP, values["group-address"], values["group-port"], address)


def _credentials(
    table: str, values: Mapping[str, Any], logins: Collection[str], cluster: Cluster | None
) -> str:
    name: str | None = values["credentials"]
    if name is None and cluster is None:
        raise Refused(
            f"[{table}] has no credentials, and there is no [cluster.NAME] whose password would "
            "sign it"
        )
    if name is None:
        assert cluster is not None
        return cluster.credentials
    if name not in logins:
        raise Refused(f"{table}.credentials names [credentials.{name}], which is not there")
    return name


def broadcast(
    name: str,
    values: Mapping[str, Any],
    folder: Path,
    connectors: Mapping[str, Single],
    logins: Collection[str],
    cluster: Cluster | None,
) -> Broadcast:
    """`values`: with defaults.  Refused."""
    table = f"{BROADCAST}.{name}"
    connector = connectors.get(values["connector"])
    if connector is None:
        raise Refused(
            f"{table}.connector names [connectors.{values['connector']}], which is not there"
        )
    if len(str(connector).encode()) > URI_BYTES_MAX:
        raise Refused(f"{table}.connector has more than {URI_BYTES_MAX} bytes")
    credentials = _credentials(table, values, logins, cluster)
    if (
        cluster is not None
        and credentials == cluster.credentials
        and connector != cluster.connector
    ):
        raise Refused(
            f"[{table}] is signed for the cluster, and announces {connector}: its members are "
            f"told {cluster.connector}.  Announce that, or say by credentials who comes there"
        )
    return Broadcast(
        name, _means(values, folder), values["local-bind-port"], values["broadcast-period"],
        connector, credentials,
    )  # fmt: skip


def discovery(
    name: str,
    values: Mapping[str, Any],
    folder: Path,
    logins: Collection[str],
    cluster: Cluster | None,
) -> Discovery:
    """`values`: with defaults.  Refused."""
    credentials = _credentials(f"{DISCOVERY}.{name}", values, logins, cluster)
    return Discovery(name, _means(values, folder), values["refresh-timeout"], credentials)


def of_cluster(cluster: Cluster, discoveries: Mapping[str, Discovery]) -> None:
    """Refused: what it looks for its members by is not there, or is not for them."""
    name = cluster.discovery_group
    if name is None:
        return
    found = discoveries.get(name)
    if found is None:
        raise Refused(
            f"cluster.{cluster.name}.discovery-group names [{DISCOVERY}.{name}], which is not there"
        )
    if found.credentials != cluster.credentials:
        raise Refused(
            f"[{DISCOVERY}.{name}] hears what {found.credentials} signs, and is to find members of "
            f"[cluster.{cluster.name}]: leave its credentials out"
        )


def of_program(found: Found) -> Discovery:
    """What a program says in a uri; ValueError."""
    values = dict(found.values)
    refresh = values.get("refresh-timeout", 10.0)
    if found.means == REGISTRY:
        channel = channel_name(values.get("channel", CHANNEL))
        means = Means(REGISTRY, registry=Path(found.place), channel=channel)
    else:
        group, _, port = found.place.rpartition(":")
        interface = values.get("local-bind-address")
        means = Means(
            UDP, group_address(group), int(port),
            interface_address(interface) if interface else "",
        )  # fmt: skip
    return Discovery("", means, refresh, "")
