"""Lives that confirm less than they are configured to, because no backup is in sync."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from shmbroker.ipc.base import trust
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config import config
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.netbridge.replicated.showing import HA

CONFIGURED: Final = "disk+replicated"
BACK: Final = "start its backup, or see its log: shmbroker ha status DIR --all says who is linked"


def findings(folder: Path) -> Iterator[Finding]:
    """Of the live in this folder, if it is a member of a replicated node."""
    found = config.load(folder)
    if found.policy != "replication":
        return
    now = status.read(folder)
    if now.process is None or now.state != "live":
        return
    subject = f"live {found.name!r} in {folder}"
    said = now.replication
    if said.startswith("suspended"):
        yield Finding("error", subject, f"it confirms nothing: it is {said}", BACK)
    elif len(found.members) == 1:
        yield Finding(
            "warning", subject, f"it has no backup: a confirm means disk, not {CONFIGURED}",
            f"make one: shmbroker create BACKUP --join {folder} --role backup",
        )  # fmt: skip
    elif said == "alone":
        level = read_whole(folder / RUN / HA, trust.seen_files()).get("level") or "disk"
        yield Finding(
            "warning", subject,
            f"no backup is in sync: a confirm means {level}, not {CONFIGURED}", BACK,
        )  # fmt: skip
    elif said == "in sync, unguarded":
        yield Finding(
            "note", subject, "it is in sync, and nobody can be asked who may be live",
            "name a witness: docs/witness.md",
        )  # fmt: skip
