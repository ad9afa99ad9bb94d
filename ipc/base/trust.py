"""Whether the content of a file may be trusted; in C: ipc/base/trust.c.

Where every user may make files, as in /dev/shm, who made one and who else may write it is looked
at before anything in it is read.  A file is believed if it belongs to us or to root, and its mode
gives others nothing that is not expected.  A link, or something that is no regular file, is
believed only in a folder in which nobody else could have put it.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import Untrusted

NOBODY: Final = -1
WRITABLE: Final = 0o022
PRIVATE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
PARENTS_MODE: Final = 0o755
SHARED_MODE: Final = 0o2770
"""Of the folder of a vhost that a group shares."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Which files are believed."""

    refused: int = WRITABLE
    """Bits of a mode that others may not have."""
    owner: int = NOBODY
    """Is believed beside us and root."""
    group: int = NOBODY
    """Its members may have them."""
    looks: bool = False
    """And believes nothing: root may look at what any user has."""
    shared: bool = False
    """What any member of the group has made is believed: a vhost that the group shares."""

    def has_owner(self, status: os.stat_result) -> bool:
        we = os.geteuid()
        return (
            status.st_uid in (we, 0, self.owner)
            or (self.looks and we == 0)
            or (self.shared and status.st_gid == self.group)
        )

    def refused_bits(self, status: os.stat_result) -> int:
        is_of_group = status.st_gid == self.group
        return status.st_mode & self.refused & (0o007 if is_of_group else 0o077)


SEGMENTS: Final = Trust(refused=0o077)
LOOKED_AT: Final = Trust(refused=0o077, looks=True)


def files() -> Trust:
    """In folders of ours: a group of which only we are, as many systems give us, may write."""
    return Trust(group=os.getegid())


def seen_files() -> Trust:
    return Trust(group=os.getegid(), looks=True)


def opened(path: Path, flags: int, trust: Trust | None = None, mode: int = PRIVATE_MODE) -> int:
    """A descriptor; Untrusted if what is in the file cannot be believed."""
    is_safe = not others_write(path.parent)
    how = flags | os.O_CLOEXEC | (0 if is_safe else os.O_NOFOLLOW | os.O_NONBLOCK)
    with untrusted(path):
        file = os.open(path, how, mode)
    try:
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode) or not is_safe:
            check(path, status, trust or files())
    except BaseException:
        os.close(file)
        raise
    return file


def content_of(path: Path, trust: Trust | None = None) -> bytes:
    with os.fdopen(opened(path, os.O_RDONLY, trust), "rb") as file:
        return file.read()


def others_write(folder: Path) -> bool:
    """Whether another user than root may put something into it."""
    try:
        status = folder.stat()
    except OSError:
        return True
    return bool(status.st_uid not in (os.geteuid(), 0) or status.st_mode & WRITABLE)


@contextmanager
def untrusted(path: Path) -> Iterator[None]:
    """An error that is about whose the file is becomes Untrusted, which says so."""
    try:
        yield
    except OSError as error:
        if (refused := refusal(path, error)) is None:
            raise
        raise refused from error


def refusal(path: Path, error: OSError) -> Untrusted | None:
    """What an error at opening means if it is about whose the file is."""
    if error.errno == errno.ELOOP:
        return Untrusted(f"{path} is a link, and could lead anywhere: remove it: rm {path}")
    if error.errno not in (errno.EACCES, errno.EPERM, errno.ENXIO):
        return None
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if error.errno == errno.ENXIO:
        return no_file(path, status)
    if status.st_uid == os.geteuid():
        return Untrusted(
            f"{path} is ours ({described(status)}), and may not be opened: chmod u+rw {path}, if "
            "all folders above it may be entered"
        )
    return Untrusted(
        f"{path} belongs to another user ({described(status)}), and may not be opened by us (user "
        f"{os.geteuid()}): run this as user {status.st_uid}"
    )


def no_file(path: Path, status: os.stat_result) -> Untrusted:
    """A pipe that nobody reads, say."""
    return Untrusted(
        f"{path} is no regular file: user {status.st_uid} has put it there; remove it: rm -r {path}"
    )


def check(path: Path, status: os.stat_result, trust: Trust) -> None:
    """Untrusted if it is not believed."""
    if not stat.S_ISREG(status.st_mode):
        raise no_file(path, status)
    check_owner(path, status, trust)
    if trust.refused_bits(status):
        raise Untrusted(
            f"{path} belongs to user {status.st_uid} and has mode {status.st_mode & 0o7777:04o}: "
            "others may have changed or read it; if you know that nobody has: chmod "
            f"{status.st_mode & 0o700:o} {path}"
        )


def check_owner(path: Path, status: os.stat_result, trust: Trust) -> None:
    if not trust.has_owner(status) and status.st_uid != our_number_in(path.parent):
        raise Untrusted(
            f"{path} belongs to {described(status)}, not to us (user {os.geteuid()}) or root, so "
            f"what is in it is not believed: run this as user {status.st_uid}, or remove it"
        )


def check_folder(path: Path) -> None:
    """Untrusted if it is another user's; nothing if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if not files().has_owner(status) and status.st_uid != our_number_in(path):
        raise Untrusted(
            f"{path} belongs to {described(status)}, not to us (user {os.geteuid()}) or root: run "
            f"this as user {status.st_uid}, or, if no program of that user needs it any more, make "
            f"it ours: chown -R {os.geteuid()} {path}"
        )


def described(status: os.stat_result) -> str:
    return f"user {status.st_uid}, mode {status.st_mode & 0o7777:04o}"


def our_number_in(folder: Path) -> int:
    """Which user we are there: a server of NFS may see root as nobody."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_uid
    except OSError:
        return NOBODY


def make_folder(path: Path, mode: int = FOLDER_MODE) -> None:
    """If there is none: with this mode, whatever the umask is; those that it is in as usual."""
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(PARENTS_MODE, exist_ok=True)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    path.chmod(mode)
