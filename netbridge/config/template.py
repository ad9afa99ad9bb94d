"""What `shmbroker create` writes for brokers that work together: one, and another that joins it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.trust import content_of
from shmbroker.ipc.instance.config.config import FILE, read_file

PORT: Final = 61616
CONSOLE_PORT: Final = 8161
MEMBERS, NODES = 2, 3
"""Their ports, behind that for programs, which has that of a witness behind it."""
CLUSTER: Final = "main"
USER: Final = "cluster"
PROGRAMS: Final = "programs"
OF_ALL: Final = ("ha.replication.", f"cluster.{CLUSTER}.")
"""What one that joins has as well."""
ADDRESS: Final = f"acceptors.{PROGRAMS}.uri"
USER_KEY: Final = f"credentials.{USER}.user"
TOLD: Final = (
    "ha.policy", "ha.members", "instance.vhost", "instance.network-vhost", USER_KEY,
    ADDRESS,
)  # fmt: skip
OF_ITS_OWN: Final = (f"cluster.{CLUSTER}.connector", f"cluster.{CLUSTER}.static-connectors")


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    host: str = "127.0.0.1"
    """By which the others reach it, and where it listens."""
    port: int = PORT
    console_port: int = CONSOLE_PORT
    is_replicated: bool = False
    is_clustered: bool = False
    witness: str | None = None
    user: str = USER

    def uri(self, behind: int = 0) -> str:
        return f"tcp://{self.host}:{self.port + behind}"

    @property
    def member(self) -> str:
        return f"{self.name}={self.uri(MEMBERS)}"

    @property
    def given(self) -> dict[str, Any]:
        """By key, as in shmbroker.toml."""
        return dict(self._given())

    def _given(self) -> Iterator[tuple[str, Any]]:
        yield from {
            ADDRESS: self.uri(),
            "acceptors.programs.roles": ["client", "admin"],
            f"credentials.{PROGRAMS}.password": {"file": password_of(PROGRAMS)},
            f"credentials.{PROGRAMS}.role": ["client", "admin"],
            "console.listen": f"127.0.0.1:{self.console_port}",
            "console.credentials": [PROGRAMS],
        }.items()
        if self.is_replicated:
            yield from {
                USER_KEY: self.user,
                f"credentials.{USER}.password": {"file": password_of(USER)},
                f"credentials.{USER}.role": ["replica", "witness"],
                "instance.network-vhost": "/",  # each has a vhost of its own on its host
                "ha.policy": "replication",
                "ha.members": [self.member],
                "console.others": [],
                "ha.replication.check-for-live-server": True,
                "acceptors.members.uri": self.uri(MEMBERS),
                "acceptors.members.roles": ["replica"],
            }.items()
            if self.witness is not None:
                yield "ha.replication.witnesses", [self.witness]
        if self.is_clustered:
            yield from {
                f"connectors.{self.name}.uri": self.uri(NODES),
                f"cluster.{CLUSTER}.connector": self.name,
                f"cluster.{CLUSTER}.static-connectors": [self.name],
                f"cluster.{CLUSTER}.user": self.user,
                f"cluster.{CLUSTER}.password": {"file": password_of(USER)},
                "acceptors.nodes.uri": self.uri(NODES),
                "acceptors.nodes.roles": ["cluster"],
            }.items()


def password_of(whose: str) -> str:
    """The file in the folder of the instance."""
    return f"{whose}.password"


def invitation(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of an instance, what another one has to know to join it; no password is in it."""
    own = values.get(f"cluster.{CLUSTER}.connector")
    wanted = {*TOLD, f"connectors.{own}.uri"}
    return {
        key: each for key, each in values.items()
        if key in wanted or (key.startswith(OF_ALL) and not key.endswith(".password"))
    }  # fmt: skip


def console_of(values: Mapping[str, Any]) -> list[str]:
    """Of the instance with this file, as console.others of another one names it."""
    listens, name = values.get("console.listen"), values.get("instance.name")
    return [f"{name}=http://{listens}/"] if listens and name else []


@dataclass(frozen=True, slots=True)
class Joined:
    """An instance that was made by a template, to which another one comes."""

    place: str
    """Its folder or its uri."""
    values: Mapping[str, Any]
    passwords: Mapping[str, str] = field(repr=False)
    """Of brokers and of programs."""

    @classmethod
    def of(cls, folder: Path) -> Joined:
        values = _checked(str(folder), read_file(folder / FILE))
        passwords = {
            whose: content_of(folder / password_of(whose)).decode().strip()
            for whose in (PROGRAMS, USER)
        }
        return cls(str(folder), values, passwords)

    @classmethod
    def told(cls, uri: str, values: Mapping[str, Any], passwords: Mapping[str, str]) -> Joined:
        """By the broker itself: what it has no business to say is dropped."""
        return cls(uri, _checked(uri, invitation(values)), passwords)

    @property
    def is_replicated(self) -> bool:
        return self.values.get("ha.policy") == "replication"

    @property
    def is_clustered(self) -> bool:
        return f"cluster.{CLUSTER}.connector" in self.values

    @property
    def user(self) -> str:
        """By which brokers know each other."""
        return str(self.values.get(USER_KEY) or self.values[f"cluster.{CLUSTER}.user"])

    def given(self, template: Template, *, is_member: bool) -> dict[str, Any]:
        """For one that has its own ports and name."""
        values = self.values
        found = {
            key: each for key, each in values.items()
            if key.startswith(OF_ALL) and key not in OF_ITS_OWN
        }  # fmt: skip
        vhost = values.get("instance.vhost", "default")
        if is_member:
            found["ha.members"] = self.members_with(template)
            found[USER_KEY] = self.user
            found["console.others"] = [*self.consoles, *console_of(values)]
            found["instance.network-vhost"] = values.get("instance.network-vhost", "")
        found["instance.vhost"] = f"{vhost}-{template.name}"
        if self.is_clustered:
            own = values[f"cluster.{CLUSTER}.connector"]
            found[f"connectors.{own}.uri"] = values[f"connectors.{own}.uri"]
            found[f"cluster.{CLUSTER}.static-connectors"] = [own]
        return found

    @property
    def consoles(self) -> list[str]:
        """Those of others that it knows."""
        return [str(each) for each in self.values.get("console.others", [])]

    def members_with(self, template: Template) -> list[str]:
        members = [str(each) for each in self.values.get("ha.members", [])]
        if any(each.partition("=")[0] == template.name for each in members):
            raise InvalidArgument(f"{self.place} has a member {template.name} already: say --name")
        return [*members, template.member]


def _checked(place: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    is_cluster = f"cluster.{CLUSTER}.connector" in values
    if not (is_cluster or values.get("ha.policy") == "replication"):
        raise InvalidArgument(
            f"{place} cannot be joined: it was not made by create --replicated or --clustered"
        )
    return values
