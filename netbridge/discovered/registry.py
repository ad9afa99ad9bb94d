"""Announcements by files in a shared folder: one file for each broker and channel.

What is in a file is signed, so nobody is asked whose file it is.  A file is replaced by rename, so
a reader meets the old content or the new one.  A reader looks at the folder again and again: over
NFS nobody tells of a change.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.discovered.wake import Wake
from shmbroker.netbridge.discovery.codec import BYTES_MAX
from shmbroker.netbridge.discovery.option import Means

FILES_MAX: Final = 1024
"""Of all that is in the folder; what is beyond that is not looked at."""
LOOKS: Final = 10
"""Within refresh-timeout."""
LOOK_SECONDS_MAX: Final = 2.0
READABLE: Final = 0o644
DIGITS: Final = 16
State = tuple[int, int, int]
"""Inode, time and size: others if it was replaced."""


def file_of(means: Means, node: bytes, name: str) -> Path:
    who = sha256(node + name.encode()).hexdigest()[:DIGITS]
    return means.registry / f"{means.channel}.{node.hex()}-{who}"


class RegistrySender(Closable):
    def __init__(self, means: Means, node: bytes, name: str) -> None:
        self._path = file_of(means, node, name)

    def say(self, data: bytes) -> None:
        """OSError: the folder is not there, say."""
        path = self._path
        temporary = path.with_name(f".{path.name}-{os.getpid()}")
        with suppress(FileNotFoundError):
            temporary.unlink()
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, how, READABLE), "wb") as file:
            file.write(data)
        try:
            temporary.chmod(READABLE)  # whatever the umask says: others are to read it
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise

    def close(self) -> None:
        with suppress(OSError):
            self._path.unlink()


class RegistrySource(Closable):
    def __init__(self, means: Means, wake: Wake, refresh: float) -> None:
        self._means, self._wake = means, wake
        self._look_seconds = min(refresh / LOOKS, LOOK_SECONDS_MAX)
        self._named = re.compile(rf"{re.escape(means.channel)}\.[0-9a-f]+-[0-9a-f]{{{DIGITS}}}")
        self._states: dict[str, State] = {}
        self._is_first = True

    def read(self, timeout: float) -> list[bytes]:
        """What is new, after a wait; OSError: the folder is not there, say."""
        if not self._is_first:
            self._wake.wait(min(timeout, self._look_seconds))
        self._is_first = False
        found: list[bytes] = []
        states: dict[str, State] = {}
        with os.scandir(self._means.registry) as entries:
            for entry in islice(entries, FILES_MAX):
                if self._named.fullmatch(entry.name):
                    with suppress(OSError):  # it was replaced or removed meanwhile
                        states[entry.name] = self._state_of(entry, found)
        self._states = states
        return found

    def _state_of(self, entry: os.DirEntry[str], found: list[bytes]) -> State:
        status = entry.stat(follow_symlinks=False)
        state = status.st_ino, status.st_mtime_ns, status.st_size
        if state != self._states.get(entry.name) and stat.S_ISREG(status.st_mode):
            found.append(_content(entry.path))
        return state

    def close(self) -> None:
        self._states = {}


def _content(path: str) -> bytes:
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, how)
    try:
        return os.read(file, BYTES_MAX + 1)
    finally:
        os.close(file)
