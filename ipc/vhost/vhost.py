"""Vhosts: namespaces of segments in /dev/shm.  Creating, finding and deleting them.

They are made and deleted in C (vhost.c, delete.c), because C programs need that too.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from shmbroker.core.codes import OK
from shmbroker.core.layout import PARTICIPANTS
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import InvalidArgument, error_for
from shmbroker.ipc.base.names import name_bytes

SHM = Path("/dev/shm")
PREFIX = "shmbroker."
CATALOG = ".catalog"
JOURNAL_BYTE = 0
PAGER_BYTE = PARTICIPANTS
ARENA_BYTES = 256 << 20
"""The arena grows up to this as messages need it; it takes no memory before."""
MODE_MAX: Final = 0o777
HOME_ROOM: Final = 384


def create(
    name: str,
    *,
    arena_bytes: int = ARENA_BYTES,
    group: str | int | None = None,
    mode: int | None = None,
) -> None:
    """Make a vhost; SegmentExists if there is one.

    Only its user may use it, or with a group (its name or number) all members of that: mode 0o660.
    With that mode and no group it is our own group.
    """
    if not isinstance(arena_bytes, int):
        raise InvalidArgument(f"arena_bytes is a number of bytes, not {arena_bytes!r}")
    if mode is not None and not 0 < mode <= MODE_MAX:
        raise InvalidArgument(f"a vhost has mode 0o600 or 0o660, not {mode!r}")
    wanted = max(-1, min(arena_bytes, 1 << 62))
    of = ffi.NULL if group is None else name_bytes(str(group))
    code = lib.sb_vhost_create_with(name_bytes(name), wanted, of, mode or 0)
    if code != OK:
        detail = detail_of(code)
        raise error_for(code, f"making vhost {name!r}", ffi.errno, detail)


def exists(name: str) -> bool:
    """True if there is a vhost of this name, whoever may use it."""
    name_bytes(name)
    if "/" in name:
        return False
    try:
        return (SHM / f"{PREFIX}{name}{CATALOG}").exists() or (
            SHM / f"{PREFIX}{name}/catalog"
        ).exists()
    except PermissionError:  # a group's, of which we are not
        return True


def names() -> list[str]:
    """The vhosts of this host that we may see."""
    own = [path.name.removesuffix(CATALOG) for path in SHM.glob(f"{PREFIX}*{CATALOG}")]
    shared = [path.parent.name for path in SHM.glob(f"{PREFIX}*/catalog")]
    return sorted({each.removeprefix(PREFIX) for each in own + shared})


def home(name: str, *, looks: bool = False) -> tuple[str, trust.Trust]:
    """What the paths of its segments begin with, and who is believed there (ipc/vhost/home.c)."""
    begin = ffi.new("char[]", HOME_ROOM)
    group = ffi.new("int64_t *")
    code = lib.sb_vhost_home(name_bytes(name), looks, begin, group)
    if code != OK:
        raise error_for(code, f"vhost {name!r}", ffi.errno, detail_of(code))
    shared = group[0] != trust.NOBODY
    whose = trust.Trust(refused=0o077, group=group[0], looks=looks, shared=shared)
    return os.fsdecode(ffi.string(begin)), whose


def has_journaler(name: str) -> bool:
    """True if a process writes the journal of this vhost."""
    return _is_locked(name, JOURNAL_BYTE)


def has_pager(name: str) -> bool:
    """True if a process pages the queues of this vhost."""
    return _is_locked(name, PAGER_BYTE)


def _is_locked(name: str, byte: int) -> bool:
    """True if somebody holds the lock of this byte of the participants' segment."""
    begin, whose = home(name, looks=True)
    try:
        file = trust.opened(Path(f"{begin}participants"), os.O_RDONLY, whose)
    except FileNotFoundError:
        return False
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        answer = fcntl.fcntl(file, F_OFD_GETLK, asked)
        kind: int = struct.unpack("hhqqi4x", answer)[0]
        return kind != fcntl.F_UNLCK
    finally:
        os.close(file)


F_OFD_GETLK: Final = 36  # the fcntl module does not have it in every build


def delete(name: str, *, force: bool = False) -> None:
    """Remove all segments of a vhost; InUse if somebody takes part in it, unless forced.

    Also what is left of one that was not made, or not deleted, to the end.
    Whoever is attached keeps what is mapped, shares it with nobody who comes later, and gets
    NotFound when it declares or deletes something.
    """
    code = lib.sb_vhost_delete(name_bytes(name), force)
    if code != OK:
        raise error_for(code, f"deleting vhost {name!r}", ffi.errno, detail_of(code))


def retire(name: str) -> None:
    """Delete a vhost whose broker is live no more: whoever is in it gets ConnectionClosed, and who
    waits for a confirm Unconfirmed."""
    lib.sb_vhost_retire(name_bytes(name))  # one that was not made to the end has nobody in it
    delete(name, force=True)
