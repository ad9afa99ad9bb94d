"""What attempts to reach the peers of `network-check` say of this host: is it isolated, or not?

It takes some misses in a row, of each peer, to be isolated: one may be lost.  Who has lost a link
has no time for that, and asks: then one miss of each is enough, and an attempt that has reached a
peer counts only if it began since.
"""

from __future__ import annotations

from collections.abc import Sequence

from shmbroker.netbridge.link.times import LinkTimes


class Attempts:
    def __init__(self, peers: Sequence[str], times: LinkTimes) -> None:
        self._why = f"it reaches none of {', '.join(peers)}"
        self._count = len(peers)
        self._misses = self._enough = times.heartbeat_misses
        self._missed: dict[int, int] = {}
        """By peer: in a row, until now."""
        self._asked_at = float("-inf")
        self._told: str | None = None

    def again(self, now: float) -> None:
        """It is asked: what attempts say from now on is told, be it as before."""
        self._told, self._asked_at, self._enough = None, now, 1

    def ended(self, peer: int, began: float, *, is_there: bool) -> str | None:
        """Of an attempt: what is to be told, if anything.  Why this host is isolated; empty: it is
        not."""
        self._missed[peer] = 0 if is_there else self._missed.get(peer, 0) + 1
        is_known = len(self._missed) == self._count
        if is_there and began >= self._asked_at:
            told = ""
        elif is_known and min(self._missed.values()) >= self._enough:
            told = self._why
        else:
            return None
        if told == self._told:
            return None
        self._told, self._enough = told, self._misses
        return told
