"""The brokers that run on this host for a vhost, by their folders."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.doctor.container import pid_namespace
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config import config
from shmbroker.ipc.instance.config.config import FILE

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


def folders_of(broker: Broker) -> list[Path]:
    """Without those of other containers, and of other users unless we are root."""
    namespace = pid_namespace()
    here = {
        each.pid for each in broker.participants()
        if each.state == "live" and each.pid_namespace in (0, namespace)
    }  # fmt: skip
    named = {folder for pid in here if (folder := folder_of(pid)) is not None}
    return sorted(folder for folder in named if _is_of(folder, broker.vhost, here))


def folder_of(process: int) -> Path | None:
    """As its command line names it; None: it ends, or is somebody else's."""
    place = Path(f"/proc/{process}")
    with suppress(OSError):
        words = place.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
        at = place.joinpath("cwd").readlink()
        folders = (at / each for each in words[1:] if each)
        return next((each for each in folders if (each / FILE).is_file()), None)
    return None


def _is_of(folder: Path, vhost: str, processes: set[int]) -> bool:
    """A program may name the folder of a broker, too."""
    with suppress(Error, OSError):
        its = status.read(folder).process
        return its is not None and its.pid in processes and config.load(folder).vhost == vhost
    return False
