"""A thread that writes into a store: common to journaler and pager.

Its code is OK while it works, DISK_FULL while it waits for room; with any other it has ended.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from threading import Lock
from typing import Any

from shmbroker.core.codes import CLOSED, DISK_FULL, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, error_for

HOUR_NS = 3600 * 10**9


class StoreWriter(Closable):
    what: str
    """It writes, for people."""

    @property
    @abstractmethod
    def _code(self) -> int: ...

    @property
    @abstractmethod
    def _why(self) -> str: ...

    @abstractmethod
    def _await(self, seen: int) -> int:
        """Its code, as soon as it is another one."""

    @abstractmethod
    def stop(self) -> None:
        """Write what is there, and end."""

    @property
    def failure(self) -> Error | None:
        """Why it does not write: DiskFull while it waits for room, or why it has ended."""
        code = self._code
        return None if code in (OK, CLOSED) else self._error(code)

    @property
    def has_ended(self) -> bool:
        return self._code not in (OK, DISK_FULL)

    def changes(self) -> Iterator[Error | None]:
        """`failure`, each time that it is of another kind, until it has ended; waits in between."""
        code = OK
        while code in (OK, DISK_FULL):
            seen, code = code, self._await(code)
            if code not in (seen, CLOSED):
                yield None if code == OK else self._error(code)

    def _error(self, code: int) -> Error:
        return error_for(code, self.what, detail=self._why)


class NativeWriter(StoreWriter):
    """In a thread of C."""

    def __init__(self, kind: str, writer: Any, what: str) -> None:
        """`kind`: its functions are sb_KIND_code and so on."""
        self._writer = writer
        self._ending = Lock()  # C joins its thread once
        self.what = what
        self._read = getattr(lib, f"sb_{kind}_code")
        self._wait = getattr(lib, f"sb_{kind}_await")
        self._text = getattr(lib, f"sb_{kind}_why")
        self._stop = getattr(lib, f"sb_{kind}_stop")
        self._free = getattr(lib, f"sb_{kind}_free")

    @property
    def _code(self) -> int:
        code: int = self._read(self._writer)
        return code

    @property
    def _why(self) -> str:
        text: bytes = ffi.string(self._text(self._writer))
        return text.decode(errors="replace")

    def _await(self, seen: int) -> int:
        code: int = self._wait(self._writer, seen, HOUR_NS)
        return code

    def stop(self) -> None:
        with self._ending:
            if self._writer != ffi.NULL:
                self._stop(self._writer)

    def close(self) -> None:
        """Stop, and free it: nobody may look at its `changes` any more."""
        with self._ending:
            if self._writer != ffi.NULL:
                self._free(self._writer)
                self._writer = ffi.NULL
