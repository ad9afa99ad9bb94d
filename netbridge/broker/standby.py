"""The brokers that wait to take over: a small file of each, in a folder of the store.

The live reads them and tells its programs; also where they are to go, when it gives back its role.
A file is of an epoch: what was written while another one was live counts no more.  Who dies leaves
its file, and a program that tries it goes on to the next member.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from shmbroker.ipc.base import trust
from shmbroker.ipc.instance.config.kind import is_name
from shmbroker.ipc.instance.whole import read_whole, write_whole

FOLDER: Final = "waiting"
NAME_BYTES: Final = 200
"""While a file is replaced there is another one beside it, with a longer name."""


def folder_of(store: Path) -> Path:
    folder = store / FOLDER
    trust.make_folder(folder)
    return folder


def file_of(store: Path, name: str) -> Path:
    """Of the broker with this name, which may be none of a file."""
    is_of_file = is_name(name) and name[0] != "." and len(name.encode()) <= NAME_BYTES
    return store / FOLDER / (name if is_of_file else sha256(name.encode()).hexdigest())


def write(store: Path, name: str, epoch: int, uri: str, *, is_original: bool = False) -> None:
    """`uri`: how others reach it, once it is live of a higher epoch than this one.

    `is_original`: it may ask for the role back."""
    told = {"epoch": epoch, "uri": uri, "original": is_original}
    folder_of(store)
    write_whole(file_of(store, name), told)


def remove(store: Path, name: str) -> None:
    """It waits no more.  The file stays: whoever watches the folder sees what is put there."""
    if file_of(store, name).exists():
        write(store, name, 0, "")


def read(store: Path, epoch: int, *, originals: bool = False) -> tuple[str, ...]:
    """The addresses of those that wait for the live of this epoch to end; or of originals only."""
    found = []
    with suppress(FileNotFoundError):
        for path in sorted((store / FOLDER).iterdir()):
            told = read_whole(path)
            uri = told.get("uri")
            is_wanted = told.get("epoch") == epoch and (told.get("original") or not originals)
            if is_wanted and isinstance(uri, str) and uri:
                found.append(uri)
    return tuple(found)
