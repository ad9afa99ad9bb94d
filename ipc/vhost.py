"""Vhosts: namespaces of segments in /dev/shm.  Making, finding and deleting them.

They are made in C (native/vhost.c), because C programs need that too.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

import posix_ipc

from shmbroker.core.codes import OK
from shmbroker.core.layout import PARTICIPANTS
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.detail import detail_of
from shmbroker.ipc.errors import InUse, InvalidArgument, NotFound, SystemRefused, error_for
from shmbroker.ipc.names import name_bytes

SHM = Path("/dev/shm")
PREFIX = "shmbroker."
CATALOG = ".catalog"
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
    found = [path.name for path in SHM.glob(f"{PREFIX}{name}.*")]
    return sorted(found, key=lambda each: (not each.endswith(CATALOG), each))


def is_in_use(name: str) -> bool:
    """True if a living participant holds the lock on its byte (native/participant.c)."""
    try:
        file = os.open(SHM / f"{PREFIX}{name}.participants", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SystemRefused(f"vhost {name!r} belongs to another user: {error}") from error
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1, PARTICIPANTS - 1, 0)
        answer = fcntl.fcntl(file, F_OFD_GETLK, asked)
        kind: int = struct.unpack("hhqqi4x", answer)[0]
        return kind != fcntl.F_UNLCK
    finally:
        os.close(file)


F_OFD_GETLK = 36  # the fcntl module does not have it in every build


def delete(name: str, *, force: bool = False) -> None:
    """Remove all segments of a vhost; InUse if somebody takes part in it, unless forced.

    Whoever is attached keeps what is mapped, and shares it with nobody who comes later.
    """
    if not exists(name):
        raise NotFound(f"there is no vhost {name!r}")
    if not force and is_in_use(name):
        raise InUse(f"vhost {name!r} has participants: close them first, or force")
    for segment in segments(name):
        with suppress(posix_ipc.ExistentialError):  # somebody else was faster
            _unlink(name, segment)


def _unlink(vhost: str, segment: str) -> None:
    try:
        posix_ipc.unlink_shared_memory(f"/{segment}")
    except posix_ipc.PermissionsError as error:
        raise SystemRefused(f"vhost {vhost!r} belongs to another user: {error}") from error
