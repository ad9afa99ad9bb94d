"""Nodes of a chain that are further away than max-hops: nothing is sent to them.

A vhost does not know of them, so what its broker shows for `cluster list` is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.instance.config.config import FILE as CONFIGURATION

TOO_FAR: Final = "too far"


def findings(folder: Path, told: dict[str, Any]) -> Iterator[Finding]:
    far = {each["name"]: each["hops"] for each in told.get("nodes", ()) if each["state"] == TOO_FAR}
    if far:
        needed, table = max(far.values()), f"[cluster.{told['cluster']}]"
        yield Finding(
            "warning",
            f"cluster {told['cluster']!r} as the broker in {folder} knows it",
            f"{' and '.join(sorted(far))}: further away than max-hops, so nothing is sent there, "
            "and queues there are not known here",
            f"set max-hops of {table} to {needed} or more in {folder / CONFIGURATION} and at all "
            "others of the chain, and restart them; or connect them more directly",
        )
