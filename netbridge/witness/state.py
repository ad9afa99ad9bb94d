"""The ledgers of a witness on disk: a file to which each change is appended, and synced.

    file      header record record ... zeros
    record    length (4) CRC (4) MessagePack of: node, ledger
    header    the same, of: LABEL, the id of the witness

The newest record of a node counts; one with an empty ledger says that the node was forgotten.  The
file is filled with zeros before it is used, so that a sync writes one block and nothing of the file
system.  When it is full it is written anew, and replaces the old one.  A record without its end was
never answered for, and is left out; one that is damaged and has others behind it is an error: the
witness must not forget what it has granted.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgpack

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import InUse, SystemRefused
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.base.trust import PRIVATE_MODE, make_folder, opened
from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.whole import sync_folder
from shmbroker.netbridge.election.codec import LEDGER, NODE
from shmbroker.netbridge.election.ledger import Ledger, of_nodes
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.wire.malformed import Malformed

FILE: Final = "ledgers"
LOCK: Final = "lock"
LABEL: Final = "shmbroker witness 1"
FILLED_BYTES: Final = 256 << 10
RECORD: Final = struct.Struct("<II")


class StateDamaged(SystemRefused):
    """What a witness has granted cannot be read; the message says where."""


class State(Closable):
    def __init__(self, folder: Path, identity: bytes) -> None:
        """`identity`: of the witness, if there is no state yet."""
        self.folder = folder
        self.identity = identity
        self.ledgers: dict[Node, Ledger] = {}
        self._file = -1
        self._end = self._size = 0
        self._lock = _locked(folder)
        try:
            self._read()
            self._write_anew()
        except OSError as error:
            self.close()
            raise SystemRefused(f"{told(error)} (the state of a witness)") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for file in (self._file, self._lock):
            if file >= 0:
                os.close(file)
        self._file = self._lock = -1

    def keep(self, changes: Iterable[tuple[Node, Ledger]]) -> None:
        """They are on the disk when this returns; OSError, and then nobody knows what is."""
        changed = dict(changes)
        self.ledgers = of_nodes(self.ledgers | changed)
        added = b"".join(_record(NODE.write(node), LEDGER.write(each))
                         for node, each in changed.items())  # fmt: skip
        if self._end + len(added) + RECORD.size > self._size:
            self._write_anew()
            return
        _write(self._file, added, self._end)
        self._end += len(added)
        os.fdatasync(self._file)

    def _read(self) -> None:
        self.identity, self.ledgers = read(self.folder, self.identity)

    def _write_anew(self) -> None:
        """Never in place: the old file counts until the new one is whole."""
        place = self.folder / FILE
        temporary = self.folder / f".{FILE}"
        content = _record(LABEL, self.identity) + b"".join(
            _record(node, LEDGER.write(each)) for node, each in self.ledgers.items()
        )
        size = FILLED_BYTES + 2 * len(content)
        temporary.unlink(missing_ok=True)
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE)
        try:
            _write(file, content.ljust(size, b"\0"), 0)
            os.fsync(file)
            temporary.replace(place)
            sync_folder(self.folder)
        except OSError:
            os.close(file)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._end, self._size = file, len(content), size


def read(folder: Path, identity: bytes = b"") -> tuple[bytes, dict[Node, Ledger]]:
    """Of a witness that runs, too; StateDamaged."""
    try:
        file = opened(folder / FILE, os.O_RDONLY)
    except FileNotFoundError:
        return identity, {}
    with os.fdopen(file, "rb") as content:
        return _parsed(content.read(), folder / FILE)


def _parsed(whole: bytes, place: Path) -> tuple[bytes, dict[Node, Ledger]]:
    records = list(_records(whole, place))
    if not records or records[0][0] != LABEL or type(records[0][1]) is not bytes:
        raise StateDamaged(f"{place} is no state of a witness")
    ledgers: dict[Node, Ledger] = {}
    for node, ledger in records[1:]:
        try:
            ledgers[NODE.read(node)] = LEDGER.read(ledger)
        except Malformed as error:
            raise StateDamaged(f"{place}: a ledger {error}") from None
    return records[0][1], of_nodes(ledgers)


def _record(*values: object) -> bytes:
    packed: bytes = msgpack.packb(values)
    return RECORD.pack(len(packed), crc32(packed)) + packed


def _at(whole: bytes, at: int) -> bytes | None:
    """The content of the record there, None if it is not whole."""
    if at + RECORD.size > len(whole):
        return None
    length, check = RECORD.unpack_from(whole, at)
    content = whole[at + RECORD.size : at + RECORD.size + length]
    is_whole = 0 < length == len(content) and crc32(content) == check
    return content if is_whole else None


def _records(whole: bytes, place: Path) -> Iterator[tuple[Any, Any]]:
    at = 0
    while (content := _at(whole, at)) is not None:
        try:
            first, second = msgpack.unpackb(content)
        except ValueError as error:
            raise StateDamaged(f"{place}: the record at {at} is none: {error}") from None
        yield first, second
        at += RECORD.size + len(content)
    end = len(whole.rstrip(b"\0"))
    for later in range(at + 1, end - RECORD.size):
        if _at(whole, later) is not None:
            raise StateDamaged(
                f"{place}: the record at {at} is damaged, and there is one behind it at {later}. "
                "Without it this witness could grant an epoch twice: restore the file, or replace "
                "the witness by one at another address while all members run"
            )


def _write(file: int, content: bytes, at: int) -> None:
    view = memoryview(content)
    while view:
        wrote = os.pwrite(file, view, at)
        view, at = view[wrote:], at + wrote


def _locked(folder: Path) -> int:
    """Two processes with one state would grant everything twice."""
    try:
        make_folder(folder)
        file = opened(folder / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise SystemRefused(f"{told(error)} (the state of a witness)") from error
    if ofd.try_lock(file, 0):
        with suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        return file
    whose = os.pread(file, 32, 0).decode(errors="replace").strip()
    os.close(file)
    raise InUse(f"{folder} is the state of a witness that runs, process {whose or 'unknown'}")


def runs(folder: Path) -> int | None:
    """The process of the witness that has this state; None if there is none."""
    try:
        file = opened(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        if not ofd.is_locked(file, 0):
            return None
        return int(os.pread(file, 32, 0).decode().strip() or 0)
    finally:
        os.close(file)
