"""The file system that a store is on, and whether it is mounted as a pair needs it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOUNTS: Final = Path("/proc/self/mountinfo")
REMOTE: Final = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "glusterfs",
    "fuse.glusterfs",
    "9p",
    "ocfs2",
)
PATIENCE_SECONDS: Final = 30.0

WANTED: Final = {
    "sync": "else a write may stay on this host, where no backup sees it",
    "noac": "else the attributes of files are cached, and a backup looks at an old journal",
    "soft": "else a live whose server is gone hangs for ever instead of ending",
    "lookupcache=none": "else a backup does not see that a segment was added",
}


@dataclass(frozen=True, slots=True)
class Mount:
    point: str
    kind: str
    options: frozenset[str]

    @property
    def is_remote(self) -> bool:
        """Others may change it without our kernel knowing."""
        return self.kind in REMOTE

    def value(self, name: str) -> int | None:
        found = [each for each in self.options if each.startswith(f"{name}=")]
        return int(found[0].partition("=")[2]) if found else None


def parsed(line: str) -> Mount:
    """A line of mountinfo: what comes before the dash is of the mount, the rest of the system."""
    of_mount, _, of_system = line.partition(" - ")
    fields, (kind, _, options, *_) = of_mount.split(" "), of_system.split(" ")  # one may be empty
    point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
    return Mount(point, kind, frozenset(fields[5].split(",") + options.split(",")))


def mount_of(path: Path, mounts: str | None = None) -> Mount:
    """The one that the path is on: the last of those whose point is nearest to it."""
    lines = (os.fsdecode(MOUNTS.read_bytes()) if mounts is None else mounts).split("\n")
    resolved = path.resolve()
    mounted = map(parsed, filter(None, lines))
    on_the_way = (each for each in mounted if resolved.is_relative_to(each.point))
    found = Mount("/", "unknown", frozenset())
    for mount in on_the_way:
        if len(mount.point) >= len(found.point):
            found = mount
    return found


def warnings(mount: Mount) -> list[str]:
    """What is to be put right about an NFS mount, and why."""
    if mount.kind not in ("nfs", "nfs4"):
        return []
    where = f"{mount.point} ({mount.kind})"
    found = [
        f"{where} is not mounted with {option}: {why}"
        for option, why in WANTED.items()
        if option not in mount.options
    ]
    timeo, retrans = mount.value("timeo"), mount.value("retrans")
    if timeo is None or retrans is None:
        found.append(
            f"{where} has no timeo and retrans: with timeo=50,retrans=1 a server that is gone is "
            "noticed after 10 s"
        )
    elif (seconds := timeo / 10 * (retrans + 1)) > PATIENCE_SECONDS:
        found.append(
            f"{where} has timeo={timeo},retrans={retrans}: a server that is gone is noticed only "
            f"after {seconds:g} s; timeo=50,retrans=1 make it 10 s"
        )
    return found
