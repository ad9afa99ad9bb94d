"""Whom a reader has heard of, and for how long: announcements and a time in, entries out.

There is one entry for each broker.  It is renewed by an announcement with a higher sequence, and
dropped when none came for `refresh-timeout` by the clock of the reader.  So a recording that is
played again renews nothing: its sequences were seen.  A reader that never heard them believes each
of them once, and an entry of a later incarnation stands before it.

What is remembered is bounded, whoever announces.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.discovery.announcement import Announcement
from shmbroker.netbridge.discovery.codec import Stranger, check_uri, decode
from shmbroker.netbridge.security.signature import Signature
from shmbroker.netbridge.wire.malformed import Malformed

NEVER: Final = float("inf")
ENTRIES_MAX: Final = 256
SEEN_MAX: Final = 4 * ENTRIES_MAX
"""Incarnations whose last sequence is known."""
PERIODS_MIN: Final = 3
STRANGERS, MALFORMED, OLD, FULL = "strangers", "malformed", "old", "full"
IGNORED: Final = (STRANGERS, MALFORMED, OLD, FULL)
MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    node: bytes
    name: str
    uri: str
    is_live: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class Line:
    """Of the log."""

    level: str
    state: str
    detail: str


@dataclass(slots=True)
class _Kept:
    of: Announcement
    renewed_at: float

    @property
    def entry(self) -> Entry:
        of = self.of
        return Entry(of.node, of.name, of.uri, of.is_live, of.epoch)


class Entries:
    def __init__(self, refresh: float, signature: Signature) -> None:
        """`refresh`: `refresh-timeout` in seconds."""
        self.ignored: Counter[str] = Counter(dict.fromkeys(IGNORED, 0))
        self._refresh, self._signature = refresh, signature
        self._kept: dict[tuple[bytes, str], _Kept] = {}
        self._seen: OrderedDict[bytes, int] = OrderedDict()
        """The highest sequence of each incarnation; the one that was heard last is the last."""
        self._told: set[str] = set()
        """Lines that are written once."""

    def heard(self, data: bytes, now: float) -> list[Line]:
        try:
            found = decode(data, self._signature)
            known = self._kept.get((found.node, found.name))
            if known is None or known.of.uri != found.uri:
                check_uri(found.uri)
        except Stranger as error:
            return self._ignores(STRANGERS, str(error))
        except Malformed as error:
            return self._ignores(MALFORMED, str(error))
        return [*self.tick(now), *self._announced(found, now)]

    def tick(self, now: float) -> list[Line]:
        """Drops what was not renewed."""
        lines = []
        for key, kept in list(self._kept.items()):
            if now >= kept.renewed_at + self._refresh:
                del self._kept[key]
                detail = f"{kept.of.name} at {kept.of.uri} was not announced for "
                lines.append(Line("info", "expired", f"{detail}{self._refresh:g} s"))
        return lines

    @property
    def deadline(self) -> float:
        renewed = min((each.renewed_at for each in self._kept.values()), default=NEVER)
        return renewed + self._refresh

    @property
    def found(self) -> tuple[Entry, ...]:
        """Lives first."""
        entries = (each.entry for each in self._kept.values())
        return tuple(sorted(entries, key=lambda each: (not each.is_live, each.name, each.node)))

    def _announced(self, of: Announcement, now: float) -> list[Line]:
        if of.sequence <= self._seen.get(of.incarnation, 0):
            self.ignored[OLD] += 1
            return []
        self._sees(of)
        key = of.node, of.name
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) >= ENTRIES_MAX:
                why = f"there are {ENTRIES_MAX} entries already: {of.name} at {of.uri} is left out"
                return self._ignores(FULL, why)
        elif known.of.incarnation != of.incarnation and of.started < known.of.started:
            self.ignored[OLD] += 1
            return []
        self._kept[key] = _Kept(of, now)
        lines = self._short(of)
        if known is None or known.of.uri != of.uri:
            lines.append(Line("info", "found", f"{of.name} at {of.uri}"))
        return lines

    def _sees(self, of: Announcement) -> None:
        self._seen[of.incarnation] = of.sequence
        self._seen.move_to_end(of.incarnation)
        if len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)

    def _ignores(self, why: str, detail: str) -> list[Line]:
        self.ignored[why] += 1
        return self._once(why, detail)

    def _short(self, of: Announcement) -> list[Line]:
        if self._refresh * MS >= PERIODS_MIN * of.period_ms:
            return []
        return self._once(
            "short",
            f"refresh-timeout is {self._refresh:g} s, and {of.name} announces itself each "
            f"{of.period_ms / MS:g} s: it will come and go.  Make it {PERIODS_MIN} periods or more",
        )

    def _once(self, state: str, detail: str) -> list[Line]:
        if state in self._told:
            return []
        self._told.add(state)
        return [Line("warning", state, detail)]
