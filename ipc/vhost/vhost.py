"""Vhosts: namespaces of segments in /dev/shm.  Creating, finding and deleting them.

They are made in C (ipc/vhost/vhost.c), because C programs need that too.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import posix_ipc

from shmbroker.core.codes import OK
from shmbroker.core.layout import PARTICIPANTS
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import (
    InUse,
    InvalidArgument,
    NotFound,
    SystemRefused,
    Untrusted,
    error_for,
)
from shmbroker.ipc.base.names import name_bytes

SHM = Path("/dev/shm")
PREFIX = "shmbroker."
CATALOG = ".catalog"
JOURNAL_BYTE = 0
PAGER_BYTE = PARTICIPANTS
ARENA_BYTES = 256 << 20
"""The arena grows up to this as messages need it; it takes no memory before."""


def create(name: str, *, arena_bytes: int = ARENA_BYTES) -> None:
    """Make a vhost; SegmentExists if there is one."""
    if not isinstance(arena_bytes, int):
        raise InvalidArgument(f"arena_bytes is a number of bytes, not {arena_bytes!r}")
    wanted = max(-1, min(arena_bytes, 1 << 62))
    code = lib.sb_vhost_create(name_bytes(name), wanted)
    if code != OK:
        detail = detail_of(code)
        raise error_for(code, f"making vhost {name!r}", ffi.errno, detail)


def exists(name: str) -> bool:
    name_bytes(name)
    return "/" not in name and (SHM / f"{PREFIX}{name}{CATALOG}").exists()


def names() -> list[str]:
    """The vhosts of this host."""
    found = SHM.glob(f"{PREFIX}*{CATALOG}")
    return sorted(path.name.removeprefix(PREFIX).removesuffix(CATALOG) for path in found)


def segments(name: str) -> list[str]:
    """The names of all segments of a vhost, the catalog first: without it there is no vhost."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):  # or it would be a pattern
        return []
    found = [path.name for path in SHM.glob(f"{PREFIX}{name}.*")]
    return sorted(found, key=lambda each: (not each.endswith(CATALOG), each))


def is_in_use(name: str) -> bool:
    """True if a living participant holds the lock on its byte (ipc/vhost/participant.c)."""
    return _is_locked(name, 1, PARTICIPANTS - 1)


def has_journaler(name: str) -> bool:
    """True if a process writes the journal of this vhost."""
    return _is_locked(name, JOURNAL_BYTE, 1)


def has_pager(name: str) -> bool:
    """True if a process pages the queues of this vhost."""
    return _is_locked(name, PAGER_BYTE, 1)


def _is_locked(name: str, first: int, bytes_: int) -> bool:
    """True if somebody holds a lock on these bytes of the participants' segment."""
    try:
        path = SHM / f"{PREFIX}{name}.participants"
        file = trust.opened(path, os.O_RDWR, trust.LOOKED_AT)
    except FileNotFoundError:
        return False
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, first, bytes_, 0)
        answer = fcntl.fcntl(file, F_OFD_GETLK, asked)
        kind: int = struct.unpack("hhqqi4x", answer)[0]
        return kind != fcntl.F_UNLCK
    finally:
        os.close(file)


@contextmanager
def _nobody_makes_one() -> Iterator[None]:
    """Who makes a vhost holds this lock (ipc/vhost/vhost.c); any user may, and keep it."""
    ends_at = time.monotonic() + LOCK_SECONDS
    folder = os.open(SHM, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > ends_at:
                    raise SystemRefused(
                        f"a process has held the lock of {SHM} for {LOCK_SECONDS} s, so that no "
                        "vhost can be deleted: see which one by lslocks, and end it"
                    ) from error
                time.sleep(LOCK_PAUSE_SECONDS)
            else:
                break
        yield
    finally:
        os.close(folder)


LOCK_SECONDS = 5
LOCK_PAUSE_SECONDS = 0.001
F_OFD_GETLK = 36  # the fcntl module does not have it in every build


def delete(name: str, *, force: bool = False) -> None:
    """Remove all segments of a vhost; InUse if somebody takes part in it, unless forced.

    Also what is left of one that was not made, or not deleted, to the end.
    Whoever is attached keeps what is mapped, and shares it with nobody who comes later.
    """
    name_bytes(name)
    with _nobody_makes_one():
        if not segments(name):
            raise NotFound(f"there is no vhost {name!r}")
        _delete(name, force=force)


def _delete(name: str, *, force: bool) -> None:
    if not force and is_in_use(name):
        raise InUse(f"vhost {name!r} has participants: close them first, or force")
    for segment in segments(name):
        with suppress(posix_ipc.ExistentialError):  # somebody else was faster
            _unlink(name, segment)


def _unlink(vhost: str, segment: str) -> None:
    try:
        posix_ipc.unlink_shared_memory(f"/{segment}")
    except posix_ipc.PermissionsError as error:
        status = os.lstat(SHM / segment)
        raise Untrusted(
            f"vhost {vhost!r} belongs to another user: {SHM / segment} ({trust.described(status)}) "
            f"can be removed by user {status.st_uid} or root only"
        ) from error
    except OSError as error:  # a folder, say
        raise SystemRefused(f"{SHM / segment} cannot be removed: {error.strerror}") from error
