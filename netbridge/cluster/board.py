"""A board: what a broker tells of its vhost, each row with the version at which it changed last.

Whoever has seen version 7 reads all rows that changed after 7, in the order of their versions, a
page at a time.  A row that changed twice since is read once.  A row that is gone stays as a note,
so that it is read by those that have seen it; only the last `GONE_MAX` of these are kept, and who
has seen less than that reads all anew.  Rows that are older than these get a new version: else the
first page of all would end before them, and whoever has seen that would read it again for ever.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.advert import Advert, Binding, Key, Queue, key_of, size_of
from shmbroker.netbridge.cluster.said import Ask, Told

ROWS_MAX: Final = 256
"""Of a page."""
PAGE_BYTES_MAX: Final = 24 << 10
GONE_MAX: Final = 1000
SPARE: Final = 64


@dataclass(frozen=True, slots=True)
class _Row:
    version: int
    advert: Advert | None
    """None: it is gone."""


class Board:
    def __init__(self, incarnation: bytes) -> None:
        self.incarnation = incarnation
        """Of the process: versions are of it."""
        self.version = 0
        self._rows: dict[Key, _Row] = {}
        self._log: list[tuple[int, Key]] = []
        """By version; an entry counts while its row has this version."""
        self._gone = 0
        self._horizon = 0
        """Notes of rows that went at this version, or before, are not kept."""

    @property
    def adverts(self) -> Iterator[Advert]:
        """All that it shows."""
        return (each.advert for each in self._rows.values() if each.advert is not None)

    def shows(self, adverts: Iterable[Advert]) -> bool:
        """All that there is; whether that is anything new."""
        former = self.version
        wanted = {key_of(each): each for each in adverts}
        for key, row in list(self._rows.items()):
            if row.advert is not None and key not in wanted:
                self._note(key, None)
        for key, advert in wanted.items():
            known = self._rows.get(key)
            if known is None or known.advert != advert:
                self._note(key, advert)
        self._trim()
        return self.version != former

    def page(self, asked: Ask) -> Told | None:
        """What whoever asks has not seen, or the beginning of that; None: it has seen all."""
        is_known = asked.incarnation == self.incarnation
        is_anew = not is_known or not self._horizon <= asked.version <= self.version
        since = 0 if is_anew else asked.version
        if since == self.version and not is_anew:
            return None
        queues: list[Queue] = []
        bindings: list[Binding] = []
        gone_queues: list[str] = []
        gone_bindings: list[Binding] = []
        until, rows, size = since, 0, 0
        for version, key in self._log[bisect_right(self._log, since, key=lambda each: each[0]) :]:
            row = self._rows.get(key)
            if row is None or row.version != version or (is_anew and row.advert is None):
                continue
            rows, size = rows + 1, size + size_of(key, row.advert)
            if rows > ROWS_MAX or (size > PAGE_BYTES_MAX and rows > 1):
                break
            until = version
            if isinstance(row.advert, Queue):
                queues.append(row.advert)
            elif row.advert is not None:
                bindings.append(row.advert)
            elif isinstance(key, str):
                gone_queues.append(key)
            else:
                gone_bindings.append(key)
        else:
            until = self.version
        return Told(
            self.incarnation, is_anew, until, self.version, tuple(queues), tuple(bindings),
            tuple(gone_queues), tuple(gone_bindings),
        )  # fmt: skip

    def _note(self, key: Key, advert: Advert | None) -> None:
        former = self._rows.get(key)
        self._gone += (advert is None) - (former is not None and former.advert is None)
        self.version += 1
        self._rows[key] = _Row(self.version, advert)
        self._log.append((self.version, key))

    def _trim(self) -> None:
        if self._gone <= GONE_MAX and len(self._log) <= 2 * len(self._rows) + SPARE:
            return
        kept = [(version, key) for version, key in self._log if self._rows[key].version == version]
        for version, key in kept:
            if self._gone <= GONE_MAX:
                break
            if self._rows[key].advert is None:
                del self._rows[key]
                self._gone, self._horizon = self._gone - 1, version
        self._log = [each for each in kept if each[1] in self._rows]
        for _, key in self._log[: bisect_right(self._log, self._horizon, key=lambda each: each[0])]:
            self._note(key, self._rows[key].advert)
