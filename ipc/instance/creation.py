"""Making an instance: a folder with its configuration, its log and, if there is none, a store."""

from __future__ import annotations

import os
from pathlib import Path

from shmbroker.ipc.base.errors import SegmentExists
from shmbroker.ipc.base.trust import PRIVATE_MODE, make_folder
from shmbroker.ipc.instance import store
from shmbroker.ipc.instance.config.config import FILE, Config, Given, configured, toml_of
from shmbroker.ipc.instance.status import RUN


class InstanceExists(SegmentExists):
    """There is an instance in this folder."""


def make_folders(config: Config) -> None:
    """Of an instance, and its store; what is there stays."""
    for each in (config.folder, config.folder / RUN, config.log.parent):
        make_folder(each)
    if config.policy == "replication":
        make_folder(config.store)  # each member has its own
    else:
        store.create(
            config.store, config.vhost, config.lock, journal=config.journal, pages=config.pages
        )


def create(folder: Path, given: Given) -> Config:
    """InstanceExists if there is one; nothing is made unless all options are right."""
    config = configured(folder, given)
    if (folder / FILE).exists():
        raise InstanceExists(f"{folder} is an instance already: edit its {FILE}")
    text = toml_of(given)
    make_folders(config)
    made = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE)
    try:
        with os.fdopen(made, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:  # of a full disk, say: half a file would be an instance, and not the one wanted
        (folder / FILE).unlink(missing_ok=True)
        raise
    return config
