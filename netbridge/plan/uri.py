"""What a uri means, and how it is printed: names in kebab-case, nothing that is the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from shmbroker.netbridge.plan.parameter import NESTED, OF_BOTH, OF_REGISTRY, OF_SINGLE, OF_UDP

PORT: Final = 61616
ROOT: Final = "/"
"""The vhost of a uri that names none."""
STATIC: Final = "static"
FAILOVER: Final = "failover"
MASTERSLAVE: Final = "masterslave"
PIN: Final = "key"

Values = tuple[tuple[str, Any], ...]
"""Parameters as they were given, by name."""

TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    name: option.kind.text
    for table in (OF_SINGLE, OF_BOTH, OF_UDP, OF_REGISTRY)
    for name, option in table.items()
}


def encoded(text: str) -> str:
    """As it may stand in a uri, also inside of a list."""
    return quote(text, safe="/:.-_~@*+[]")


def printed(values: Values) -> str:
    pairs = (f"{name}={encoded(TEXTS[name.removeprefix(NESTED)](value))}" for name, value in values)
    text = "&".join(pairs)
    return f"?{text}" if text else ""


@dataclass(frozen=True, slots=True)
class Single:
    """One broker, reached over TCP."""

    host: str
    """An IPv6 address stands here without brackets."""
    port: int = PORT
    vhost: str = ROOT
    values: Values = field(default=())

    @property
    def peer(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_anywhere(self) -> bool:
        """An address to listen on, which nobody can connect to."""
        return self.host in ("*", "0.0.0.0", "::")

    @property
    def place(self) -> tuple[str, int, str]:
        """Two members with one place are one member."""
        return self.host, self.port, self.vhost

    def tells_of(self, told: Single) -> Single:
        """As that other one is connected to, of its group: it has its vhost, and its key unless one
        was told with it."""
        key = dict(told.values).get(PIN) or dict(self.values).get(PIN)
        return replace(told, vhost=self.vhost, values=((PIN, key),) if key else ())

    def __str__(self) -> str:
        vhost = "" if self.vhost == ROOT else f"/{quote(self.vhost, safe='.-_~')}"
        return f"tcp://{self.peer}{vhost}{printed(self.values)}"


@dataclass(frozen=True, slots=True)
class Shared:
    """A vhost of this host: shared memory, no link."""

    vhost: str

    def __str__(self) -> str:
        return f"shm://{quote(self.vhost, safe='.-_~')}"


@dataclass(frozen=True, slots=True)
class Members:
    """A list: `static:`, `failover:` or `masterslave:`."""

    scheme: str
    members: tuple[Member, ...]
    values: Values = field(default=())

    def __str__(self) -> str:
        inside = ",".join(map(str, self.members))
        return f"{self.scheme}:({inside}){printed(self.values)}"


@dataclass(frozen=True, slots=True)
class Found:
    """Members that discovery finds: by the name of a table, by multicast, or in a registry."""

    means: str
    """`name`, `udp` or `registry`."""
    place: str
    values: Values = field(default=())

    def __str__(self) -> str:
        if self.means == "name":
            return f"discovery:{encoded(self.place)}"
        separator = "://" if self.means == "udp" else ":"
        place = f"{self.means}{separator}{encoded(self.place)}"
        return f"discovery:({place}){printed(self.values)}"


Member = Single | Members
Uri = Single | Shared | Members | Found


def singles(uri: Uri) -> Iterator[Single]:
    """All brokers that a uri names, in its order."""
    if isinstance(uri, Single):
        yield uri
    elif isinstance(uri, Members):
        for each in uri.members:
            yield from singles(each)
