"""[console]: where the console of an instance listens, and who may log in there."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from shmbroker.ipc.instance.config.config import ConfigError
from shmbroker.ipc.instance.config.kind import FLAG, FOLDER, MEMBERS, Kind
from shmbroker.ipc.instance.config.option import Option
from shmbroker.netbridge.wire.words import Role

TABLE: Final = "console"
PORT_MAX: Final = 65535
ROLES: Final = frozenset({Role.ADMIN, Role.VIEWER})
ADDRESS_EXPECTED: Final = 'an address and a port, as in "127.0.0.1:8161" or "[::1]:8161"'
NAMES_EXPECTED: Final = 'names, as in ["operator"]'
OTHERS_EXPECTED: Final = 'names and addresses, as in ["backup=https://two:8161/"]'


def _address(given: object) -> tuple[str, int]:
    """Port 0: any that is free."""
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:/\s]+):(\d{1,5})", str(given), re.A)
    if not isinstance(given, str) or found is None or int(found[2]) > PORT_MAX:
        raise ValueError(ADDRESS_EXPECTED)
    return found[1].strip("[]"), int(found[2])


def _names(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise ValueError(NAMES_EXPECTED)
    return tuple(dict.fromkeys(given))


def is_link(given: str) -> bool:
    """Whether a browser that follows it comes to another page, and runs nothing here."""
    try:
        found = urlsplit(given)
        return found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        return False


def _others(given: object) -> tuple[tuple[str, str], ...]:
    try:
        pairs: tuple[tuple[str, str], ...] = MEMBERS.parse(given)
    except ValueError:
        raise ValueError(OTHERS_EXPECTED) from None
    if not all(is_link(url) for _, url in pairs):
        raise ValueError(OTHERS_EXPECTED)
    return pairs


ADDRESS: Final = Kind("address", _address)
NAMES: Final = Kind("names", _names)
OTHERS: Final = Kind("members", _others)
CONSOLE: Final = (
    Option(TABLE, "listen", ADDRESS, None, "Address and port, as in `127.0.0.1:8161`.",
           is_required=True),
    Option(TABLE, "credentials", NAMES, [],
           "[credentials.NAME] of role admin or viewer that may log in; none: only by the link of "
           "`shmbroker console open`.", is_reloaded=True),
    Option(TABLE, "names", NAMES, [],
           "Names of hosts by which browsers reach it, beside its address and that of the host."),
    Option(TABLE, "others", OTHERS, [],
           "Names of the other members, with the addresses of their consoles: a passive one has a "
           "link to that of its live."),
    Option(TABLE, "tls-cert", FOLDER, "",
           "The file with the certificate; needed unless it listens on loopback."),
    Option(TABLE, "tls-key", FOLDER, "", "The file with its key; others may not read it."),
    Option(TABLE, "metrics-open", FLAG, False,
           "Whether /metrics is for anybody, and not only for who may log in."),
)  # fmt: skip


class Refused(Exception):
    """The table is wrong; the message says how."""


class Login(Protocol):
    @property
    def roles(self) -> tuple[Role, ...]: ...


@dataclass(frozen=True, slots=True)
class Console:
    """[console], checked."""

    host: str
    port: int
    credentials: tuple[str, ...]
    names: tuple[str, ...]
    certificate: Path | None
    key: Path | None
    is_open_for_metrics: bool
    others: tuple[tuple[str, str], ...] = ()
    """Consoles of other members, by name."""

    @property
    def is_secure(self) -> bool:
        return self.certificate is not None


def of(
    values: Mapping[str, Any] | None, logins: Mapping[str, Login], folder: Path, place: Path
) -> Console | None:
    """None: there is no such table; ConfigError."""
    if values is None:
        return None
    try:
        return _console(values, {name: each.roles for name, each in logins.items()}, folder)
    except Refused as error:
        raise ConfigError(f"{place}: {error}") from None


def _console(
    values: Mapping[str, Any], roles: Mapping[str, tuple[Role, ...]], folder: Path
) -> Console:
    if "listen" not in values:
        raise Refused('[console] has no listen: where it listens, as in "127.0.0.1:8161"')
    host, port = values["listen"]
    named = values.get("credentials", ())
    for name in named:
        if name not in roles:
            raise Refused(f"console.credentials names [credentials.{name}], which is not there")
        if not ROLES & set(roles[name]):
            raise Refused(
                f"console.credentials names [credentials.{name}], which has neither the role "
                '"admin" nor "viewer"'
            )
    certificate, key = values.get("tls-cert", ""), values.get("tls-key", "")
    if bool(certificate) != bool(key):
        raise Refused("[console] has one of tls-cert and tls-key: it needs both, or neither")
    if not certificate and not is_loopback(host):
        raise Refused(
            f"console.listen is {host}, which others reach: passwords would go there in the "
            "clear; say tls-cert and tls-key, or listen on 127.0.0.1"
        )
    if certificate:
        _check_pair(folder / certificate, folder / key)
    return Console(
        host, port, named, values.get("names", ()),
        folder / certificate if certificate else None, folder / key if key else None,
        values.get("metrics-open", False), values.get("others", ()),
    )  # fmt: skip


def _check_pair(certificate: Path, key: Path) -> None:
    for name, path in (("tls-cert", certificate), ("tls-key", key)):
        if not path.is_file():
            raise Refused(f"console.{name} is {path}, which is no file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise Refused(f"console.tls-cert and tls-key do not go together: {error}") from None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
