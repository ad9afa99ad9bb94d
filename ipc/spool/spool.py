"""The spool: how long messages took, interval by interval, in files (docs/latency.md).

    HOST-VHOST-START.hlog.part     is written: each interval is on disk before the next begins
    HOST-VHOST-START.hlog          complete; the rename is the commit
    HOST-VHOST-START.parquet       the same, made from it

Whoever is killed leaves a `.part`, and the next who opens the spool completes it: lines are whole
or cut off, so what is behind the last newline goes.  One writer at a time: it holds the lock of
`HOST-VHOST.lock`.  The oldest files go when there is more than `keep_bytes` of them.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, monotonic_ns, time_ns
from typing import BinaryIO

from shmbroker.core.codes import NOT_FOUND
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Error, InUse, InvalidArgument, SystemRefused
from shmbroker.ipc.base.trust import make_folder, opened
from shmbroker.ipc.connection.broker import Broker, connect
from shmbroker.ipc.latency.latency import Counts, counts_of
from shmbroker.ipc.spool import hlog

PART = ".part"
INTERVAL_S = 10.0
ROTATE_S = 3600.0
ROTATE_BYTES = 64 << 20
KEEP_BYTES = 1 << 30


FILE_MODE = 0o644
FOLDER_MODE = 0o755
"""Who evaluates a spool may be another user."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """What one look has written."""

    intervals: int
    unread: tuple[str, ...]
    """Queues whose times could not be read, and why; the next interval has them all the same."""


def _made(path: Path) -> int:
    """A new file, instead of what is there."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)


Kinds = Mapping[str, Counts]
More = Callable[[], Mapping[str, Kinds]]
"""What others have counted of queues, by their names."""


def _nothing() -> Mapping[str, Kinds]:
    return {}


OTHERS = -1
"""No queue has this reference."""

Times = Mapping[tuple[str, str], Counts]
"""By name and kind."""


def _recorded(broker: Broker, unread: list[str], more: More) -> Iterator[tuple[int, Times | None]]:
    """The times of each queue, by its reference, and of all others; None: they cannot be read."""
    for entry in broker._catalog.queues():
        counts = counts_of(broker._connection, entry.reference)
        if not isinstance(counts, int):
            yield entry.reference, {(entry.name, kind): each for kind, each in counts.items()}
        elif counts != NOT_FOUND:
            unread.append(f"{entry.name}: {detail_of(counts)}")
            yield entry.reference, None
    others: Times | None = None
    try:
        found = more().items()
        others = {(name, kind): each for name, kinds in found for kind, each in kinds.items()}
    except Error as error:
        unread.append(str(error))
    yield OTHERS, others


@dataclass(frozen=True)
class Counted:
    """What has been counted before an interval begins, and is of no interval."""

    monotonic_ns: int
    counts: Mapping[int, Times | None]
    """None: nobody could read it, so nothing is of an interval that stands there the first time."""


def counted(broker: Broker, more: More = _nothing) -> Counted:
    """Up to now."""
    counts = dict(_recorded(broker, [], more))
    return Counted(monotonic_ns(), counts)


class Spool(Closable):
    """Writes the latency of a vhost's queues into a folder, one interval after another.

    Call `tick` again and again: it says for how long there is nothing to do.  Or `write`, for an
    interval that ends now.
    """

    def __init__(
        self,
        url: str,
        folder: str | os.PathLike[str],
        *,
        interval: float = INTERVAL_S,
        rotate: float = ROTATE_S,
        rotate_bytes: int = ROTATE_BYTES,
        keep_bytes: int = KEEP_BYTES,
        parquet: bool | None = None,
        host: str | None = None,
        since: Counted | None = None,
        more: More = _nothing,
    ) -> None:
        """parquet: None writes it if pyarrow is there (`pip install shmbroker[spool]`).
        since: where the first interval begins, if not now.
        more: what links, say, have counted, in the same buckets."""
        for name, value in (("interval", interval), ("rotate", rotate)):
            if not value > 0:
                raise InvalidArgument(f"{name} is a number of seconds above 0, not {value!r}")
        for name, size in (("rotate_bytes", rotate_bytes), ("keep_bytes", keep_bytes)):
            if not size > 0:
                raise InvalidArgument(f"{name} is a number of bytes above 0, not {size!r}")
        has_parquet = find_spec("pyarrow") is not None
        if parquet and not has_parquet:
            raise InvalidArgument("Parquet needs pyarrow: pip install 'shmbroker[spool]'")
        self._url = url
        self._more = more
        self.folder = Path(folder)
        self.interval = interval
        self._rotate_ns = int(rotate * 1e9)
        self._rotate_bytes = min(rotate_bytes, keep_bytes)
        self._keep_bytes = keep_bytes
        self._parquet = has_parquet if parquet is None else parquet
        self._broker: Broker = connect(url, observe=True)
        host = host or socket.gethostname()
        self.origin = hlog.Origin(host, self._broker.vhost, version("shmbroker"))
        self._prefix = re.sub(r"[^\w.-]", "_", f"{host}-{self._broker.vhost}")
        self._file: BinaryIO | None = None
        self._path = self.folder
        self._opened_ns = 0
        self._lock = -1
        try:
            self._open_folder()
            since = since or counted(self._broker, more)
        except BaseException:
            self._let_go()
            raise
        self._before = since.counts
        self._since_ns = since.monotonic_ns
        self.unread: tuple[str, ...] = ()
        """As the last look has found it."""
        self._due = monotonic() + interval

    # --- the folder ---------------------------------------------------------------------------

    def _locked(self) -> int:
        """The lock of the folder, which is made if it is not there."""
        try:
            make_folder(self.folder, FOLDER_MODE)
            lock = opened(self.folder / f"{self._prefix}.lock", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BaseException:
                os.close(lock)
                raise
        except BlockingIOError as error:
            raise InUse(f"another process writes the spool of {self._prefix} in {self.folder}: "
                        "one is enough") from error  # fmt: skip
        except OSError as error:
            raise SystemRefused(f"the spool {self.folder} cannot be written: {error}") from error
        return lock

    def _open_folder(self) -> None:
        self._lock = self._locked()
        with self._refused():
            for path in self._files(rf"hlog\{PART}"):
                self._complete(path)
            for path in self._files(rf"parquet\{PART}"):  # made anew below, from the log
                path.unlink()
            with suppress(OSError):  # each rotation tries again, and says so
                self._convert_and_delete()

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """What the system refuses is an error of ours; pyarrow has a kind of its own of them."""
        try:
            yield
        except OSError as error:
            raise SystemRefused(f"the spool {self.folder} cannot be written: {error}") from error

    def _files(self, suffix: str) -> list[Path]:
        """Ours, the oldest first."""
        name = re.compile(rf"{re.escape(self._prefix)}-(\d+)\.(?:{suffix})")
        found = ((name.fullmatch(path.name), path) for path in self.folder.iterdir())
        return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]

    def _sync_folder(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _complete(self, path: Path) -> None:
        """A log gets its name; an interval that was cut off is dropped, as is an empty log."""
        with os.fdopen(opened(path, os.O_RDWR), "r+b") as file:
            content = file.read()
            whole = content.rfind(b"\n") + 1
            file.truncate(whole)
            os.fsync(file.fileno())
        if b"\nTag=" not in content[:whole]:
            path.unlink()
        else:
            path.rename(path.with_suffix(""))
        self._sync_folder()

    def _convert_and_delete(self) -> None:
        """The oldest go also if there is no room for tables."""
        self._delete_old()
        if self._parquet:
            for path in self._files("hlog"):
                if not path.with_suffix(".parquet").exists():
                    self._convert(path)
            self._delete_old()

    def _convert(self, path: Path) -> None:
        from shmbroker.ipc.spool.parquet import write

        part = path.with_suffix(f".parquet{PART}")
        try:
            os.close(_made(part))
            write(path, part)
        except Error as error:
            part.unlink(missing_ok=True)
            self._put_aside(path, error)
            return
        except OSError:  # the disk is full, say: it is made with the next one
            part.unlink(missing_ok=True)
            raise
        part.rename(path.with_suffix(".parquet"))
        self._sync_folder()

    def _put_aside(self, path: Path, error: Error) -> None:
        """Somebody has changed a log: it is kept for people, with the reason beside it."""
        bad = path.with_suffix(".hlog.bad")
        path.rename(bad)
        with os.fdopen(_made(bad.with_suffix(".reason")), "w") as file:
            file.write(f"{bad.name}: {error}\n")

    def _delete_old(self) -> None:
        """Remove the oldest files while there are too many bytes of them."""
        files = self._files(r"hlog|parquet|hlog\.bad|hlog\.reason")
        sizes = [path.stat().st_size for path in files]
        left = sum(sizes)
        for path, size in zip(files, sizes, strict=True):
            if left <= self._keep_bytes:
                break
            path.unlink()
            left -= size

    # --- intervals ----------------------------------------------------------------------------

    def _intervals(
        self, unread: list[str], now: dict[int, Times | None], start: int, end: int
    ) -> Iterator[hlog.Interval]:
        for of, times in _recorded(self._broker, unread, self._more):
            before = self._before.get(of, {})
            now[of] = before if times is None else times
            if times is None or before is None:
                continue
            for (name, kind), counts in times.items():
                counted = counts.since(before.get((name, kind)))
                if counted.indexes or counted.overflow:
                    yield hlog.Interval(name, kind, start, end, counted)

    def write(self) -> Spooled:
        """Write what was counted since the last time.

        If that fails (SystemRefused: the disk is full, say), the next interval has it all.
        """
        unread: list[str] = []
        now: dict[int, Times | None] = {}
        # the clock may have been set: how long an interval is does not depend on it
        until = monotonic_ns()
        end = time_ns()
        start = end - (until - self._since_ns)
        lines = [hlog.line(each) for each in self._intervals(unread, now, start, end)]
        self.unread = tuple(unread)
        with self._refused():
            if lines:
                self._append(lines, start)
            self._before = now
            self._since_ns = until
            if self._file is not None and self._is_full():
                self.rotate()
        return Spooled(len(lines), self.unread)

    def _look_for_folder(self) -> None:
        """If somebody has removed it this interval is refused, and the next one is in a new one."""
        if self._file is not None and os.fstat(self._file.fileno()).st_nlink == 0:
            self._file.close()
            self._file = None
            raise FileNotFoundError(f"somebody has removed {self._path}")
        if self._file is None and os.fstat(self._lock).st_nlink == 0:
            former, self._lock = self._lock, self._locked()
            os.close(former)

    def _append(self, lines: list[str], start: int) -> None:
        self._look_for_folder()
        if self._file is None:
            self._path = self.folder / f"{self._prefix}-{start}.hlog{PART}"
            self._file = open(_made(self._path), "wb", buffering=0)  # noqa: SIM115
            self._opened_ns = monotonic_ns()
            lines = [hlog.head(start, *self._names()), *lines]
        good = self._file.seek(0, os.SEEK_END)
        left = memoryview("".join(lines).encode())
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fdatasync(self._file.fileno())
        except OSError:
            self._file.truncate(good)
            if good == 0:  # no head, no log
                self._file.close()
                self._file = None
                self._path.unlink()
            raise

    def _names(self) -> tuple[str, str, str]:
        return self.origin.host, self.origin.vhost, self.origin.build

    def _is_full(self) -> bool:
        assert self._file is not None
        size = self._file.seek(0, os.SEEK_END)
        age = monotonic_ns() - self._opened_ns
        return size >= self._rotate_bytes or age >= self._rotate_ns

    def rotate(self) -> None:
        """Complete the file that is being written, if there is one."""
        if self._file is None:
            return
        self._file.close()
        self._file = None
        self._complete(self._path)
        self._convert_and_delete()

    def tick(self) -> float:
        """Write if an interval is over: how many seconds are left of the present one."""
        left = self._due - monotonic()
        if left > 0:
            return left
        self._due += self.interval * (1 + int(-left / self.interval))  # what was missed is missed
        self.write()
        return max(0.0, self._due - monotonic())

    def close(self) -> None:
        """Write the interval that has begun, and complete the file."""
        if self._lock < 0:
            return
        try:
            self.write()
            with self._refused():
                self.rotate()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        self._broker.close()
