"""Lists of members in a file or at a URL (`update-uris-url`), read in a thread of its own.

A list has the members of `failover:(…)`, separated by commas or lines; what comes behind # is for
people.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import FAILOVER, Member, Members

LIST_BYTES_MAX: Final = 64 << 10
READ_SECONDS: Final = 5.0
SCHEMES: Final = ("http://", "https://", "file:")


def read_members(where: str) -> tuple[Member, ...]:
    """Error: it cannot be read, or is no list."""
    try:
        lines = _content(where).decode().splitlines()
    except (OSError, ValueError, HTTPException) as error:  # with them: no URL, no UTF-8
        raise Error(f"{where}: {error}") from None
    parts = (line.partition("#")[0].strip().strip(",") for line in lines)
    found = parse(f"{FAILOVER}:({','.join(each for each in parts if each)})")
    assert isinstance(found, Members)
    return found.members


def _content(where: str) -> bytes:
    url = where if where.lower().startswith(SCHEMES) else Path(where).absolute().as_uri()
    with urllib.request.urlopen(url, timeout=READ_SECONDS) as source:
        content: bytes = source.read(LIST_BYTES_MAX + 1)
    if len(content) > LIST_BYTES_MAX:
        raise ValueError(f"a list has {LIST_BYTES_MAX} bytes at most")
    return content


class Listed:
    """The lists of one link."""

    def __init__(
        self,
        call: Callable[[Callable[[], None]], None],
        found: Callable[[tuple[Member, ...]], None],
        failed: Callable[[str], None],
    ) -> None:
        """`call`: of the network thread, in which the others are called.

        `failed` is called once as long as the reason is the same.
        """
        self._call, self._found, self._failed = call, found, failed
        self._reads = False
        self._why = ""

    def read(self, where: str) -> None:
        """Unless it is being read: nobody waits for it."""
        if not self._reads:
            self._reads = True
            name = "shmbroker-list"
            threading.Thread(target=self._read, args=(where,), name=name, daemon=True).start()

    def _read(self, where: str) -> None:
        members: tuple[Member, ...] = ()
        why = ""
        try:
            members = read_members(where)
        except Error as error:
            why = str(error)
        self._call(lambda: self._was_read(members, why))

    def _was_read(self, members: tuple[Member, ...], why: str) -> None:
        self._reads = False
        if why and why != self._why:
            self._failed(why)
        self._why = why
        if members:
            self._found(members)
