"""Making an instance: a folder with its configuration, its log and, if there is none, a store."""

from __future__ import annotations

from pathlib import Path

from shmbroker.ipc.errors import SegmentExists
from shmbroker.ipc.instance import store
from shmbroker.ipc.instance.config import FILE, Config, Given, configured, toml_of
from shmbroker.ipc.instance.status import RUN


class InstanceExists(SegmentExists):
    """There is an instance in this folder."""


def create(folder: Path, given: Given) -> Config:
    """InstanceExists if there is one; nothing is made unless all options are right."""
    config = configured(folder, given)
    if (folder / FILE).exists():
        raise InstanceExists(f"{folder} is an instance already: edit its {FILE}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / RUN).mkdir(exist_ok=True, mode=0o700)
    config.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    store.create(config.store, config.vhost, config.lock)
    try:
        with (folder / FILE).open("x") as file:
            (folder / FILE).chmod(0o600)
            file.write(toml_of(given))
    except OSError:  # of a full disk, say: half a file would be an instance, and not the one wanted
        (folder / FILE).unlink(missing_ok=True)
        raise
    return config
