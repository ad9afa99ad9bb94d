"""Containers that share too little: one sees another's processes, or vhosts, or does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shmbroker.ipc.doctor.finding import Finding

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.vhost.participants import ParticipantInfo

HOST: Final = 0xEFFFFFFC
"""The inode of the pid namespace of the host itself: PROC_PID_INIT_INO of the kernel."""


def of_broker(broker: Broker) -> list[Finding]:
    return list(apart(broker.vhost, broker.participants()))


def apart(vhost: str, participants: Sequence[ParticipantInfo]) -> Iterator[Finding]:
    """Participants that cannot see each other's processes.  Where we are does not matter."""
    groups: dict[int, list[str]] = {}
    for each in participants:
        if each.state == "live":
            groups.setdefault(each.pid_namespace, []).append(f"{each.name} ({each.id})")
    if len(groups) > 1:
        told = "; ".join(", ".join(names) for names in groups.values())
        yield Finding(
            "warning",
            f"vhost {vhost!r}",
            f"its participants live in {len(groups)} pid namespaces, as those of containers are: "
            f"{told}; a death is noticed up to 100 ms later, and nobody notices that a process "
            "lives which has lost its lock",
            "let the containers share one: --pid=host or --pid=container:NAME of docker run, "
            "shareProcessNamespace: true of a pod; see docs/containers.md",
        )


def alone(vhosts: Sequence[str], namespace: int) -> Iterator[Finding]:
    """A container that sees no vhost: those of the host, and of others, are in another /dev/shm."""
    if namespace != HOST and not vhosts:
        yield Finding(
            "note",
            "/dev/shm",
            "this is a container, and its /dev/shm has no vhost; that of the host, or of another "
            "container, is another one unless it is shared",
            "docker run --ipc=host, or --ipc=container:NAME; see docs/containers.md",
        )


def pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino
