"""Nodes of a chain that are further away than max-hops: nothing is sent to them.

A vhost does not know of them, so its broker is asked: by the file that it shows `cluster list` by.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc.doctor.container import pid_namespace
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.instance.config.config import FILE as CONFIGURATION
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.netbridge.clustered.shown import FILE

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

NAMED: Final = "cluster "
"""How the name of the broker's connection begins."""
TOO_FAR: Final = "too far"


def findings(broker: Broker) -> Iterator[Finding]:
    namespace = pid_namespace()
    for each in broker.participants():
        is_here = each.state == "live" and each.pid_namespace in (0, namespace)
        if is_here and each.name.startswith(NAMED) and (folder := folder_of(each.pid)) is not None:
            yield from of_cluster(folder, read_whole(folder / RUN / FILE))


def folder_of(process: int) -> Path | None:
    """Of a broker, as its command line names it; None: it ends, or is somebody else's."""
    place = Path(f"/proc/{process}")
    with suppress(OSError):
        words = place.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
        at = place.joinpath("cwd").readlink()
        folders = (at / each for each in words[1:])
        return next((each for each in folders if (each / CONFIGURATION).is_file()), None)
    return None


def of_cluster(folder: Path, told: dict[str, Any]) -> Iterator[Finding]:
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
