"""The record in live.lock: which instance is or was live, and how that ended.

    bytes 0-15    the epoch, hexadecimal: the journaler looks at it before it writes
    then          the rest as JSON, padded to one sector, which a disk writes as a whole

Only who is live writes it, in one write, and syncs it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import about
from shmbroker.ipc.base.trust import opened
from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.process import Process, of_fields

FILE: Final = "live.lock"
BYTES: Final = 512
EPOCH_DIGITS: Final = 16
JSON_BYTES: Final = BYTES - EPOCH_DIGITS - 2
EPOCH_MAX: Final = 1 << 62
MAKING_BYTE: Final = 2
"""Is locked by who makes the store; those before it are of file_lock.py."""

NONE: Final = "none"
LIVE: Final = "live"
STOPPED: Final = "stopped"
HANDED_OVER: Final = "handed over"
SCALED_DOWN: Final = "scaled down"
ENDS: Final = (NONE, LIVE, STOPPED, HANDED_OVER, SCALED_DOWN)
"""Nobody was live yet; somebody is, or has crashed; was stopped; was stopped for another one; has
given away all that it had."""


WRITING_SECONDS_MAX: Final = 1.0
"""One sector, from memory."""

FILE_NUMBER_MIN: Final = 512
"""Who dies lets go of files with high numbers first, and closing an inotify file takes it 10 ms and
more.  A participant's lock has an even higher number (ipc/vhost/attach.c): who gets the live
lock finds that the former live takes part no more."""


class RecordDamaged(Error):
    """live.lock does not say who is live."""


@dataclass(frozen=True, slots=True)
class Record:
    epoch: int = 0
    state: str = NONE
    instance: str = ""
    process: Process | None = None
    rings: int = 0
    """The identity of the vhost whose rings are what the journal is written from; 0: none yet."""

    @property
    def calls_for_backup(self) -> bool:
        """Somebody was live, and nobody has said that he shall not be replaced."""
        return self.state in (LIVE, HANDED_OVER)

    @property
    def is_mended(self) -> bool:
        """Nobody has written it who was live (mending.py)."""
        return self.epoch > 0 and not self.instance

    @property
    def told(self) -> str:
        """All but the epoch."""
        return self._json(is_ascii=True)

    def _json(self, *, is_ascii: bool) -> str:
        fields = asdict(self)
        del fields["epoch"]
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=is_ascii)

    def encoded(self) -> bytes:
        """With as much of the name as there is room for: it is for people."""
        whole = self
        while len(text := whole._json(is_ascii=False).encode()) > JSON_BYTES and whole.instance:
            whole = replace(whole, instance=whole.instance[:-1])
        return b"%0*x\n%s\n" % (EPOCH_DIGITS, self.epoch, text.ljust(JSON_BYTES))


def decoded(content: bytes, name: str = FILE) -> Record:
    """RecordDamaged if it is not one: it may be just being written, then look again."""
    if not content:
        raise RecordDamaged(f"{name} is empty: it should say who is live")
    if not re.fullmatch(rb"[0-9a-f]{16}\n", content[: EPOCH_DIGITS + 1]):
        raise RecordDamaged(f"{name} begins with {content[:24]!r}, and not with an epoch")
    epoch = int(content[:EPOCH_DIGITS], 16)
    if epoch > EPOCH_MAX:
        raise RecordDamaged(f"{name} has the epoch {epoch:x}, which nothing can be")
    try:
        return made(epoch, json.loads(content[EPOCH_DIGITS:]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        what = f"{name} does not say who is live: behind the epoch it has {content[17:57]!r}..."
        raise RecordDamaged(what) from None


def made(epoch: int, fields: dict[str, Any]) -> Record:
    """TypeError or KeyError if these are not the fields of one."""
    record = Record(epoch=epoch, process=of_fields(fields.pop("process")), **fields)
    kinds = {"state": str, "instance": str, "rings": int}
    if not all(type(getattr(record, name)) is kind for name, kind in kinds.items()):
        raise TypeError("a record has other fields")
    if record.state not in ENDS:
        raise RecordDamaged(f"live.lock knows a state {record.state!r}: is it of a later version?")
    return record


def with_high_number(file: int) -> int:
    try:
        high: int = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, FILE_NUMBER_MIN)
    except OSError:  # the process may not have so many
        return file
    os.close(file)
    return high


class RecordFile:
    """live.lock itself."""

    def __init__(self, store: Path) -> None:
        self.path = store / FILE
        self.number = with_high_number(opened(self.path, os.O_RDWR))

    def read(self) -> Record:
        """RecordDamaged if it is that, and not only just being written."""
        ends_at = time.monotonic() + WRITING_SECONDS_MAX
        while (found := self.read_if_whole()) is None and time.monotonic() < ends_at:
            time.sleep(0)
        return found or decoded(self._content(), str(self.path))

    def read_if_whole(self) -> Record | None:
        """None if it is just being written: there will be word of that."""
        try:
            return decoded(self._content())
        except RecordDamaged:
            return None

    def _content(self) -> bytes:
        with about(self.path):
            return os.pread(self.number, BYTES, 0)

    def write(self, record: Record) -> None:
        """Synced when it returns.  Only for who is live."""
        with about(self.path):
            os.pwrite(self.number, record.encoded(), 0)
            os.fdatasync(self.number)

    def close(self) -> None:
        os.close(self.number)


@contextmanager
def being_made(store: Path, *, waits: bool) -> Iterator[int]:
    """The file; `waits`: as long as somebody else makes this store, and locks say so."""
    file = opened(store / FILE, os.O_RDWR | os.O_CREAT)
    try:
        if waits:
            ofd.lock(file, MAKING_BYTE)
        yield file
    finally:
        os.close(file)


def write_first(file: int) -> None:
    """The record of nobody."""
    os.pwrite(file, Record().encoded(), 0)
    os.fsync(file)
