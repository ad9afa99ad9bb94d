"""Which lives of a cluster have come since it was looked last: links to them that have given up, as
`reconnect-attempts` says, are tried again.
"""

from __future__ import annotations

from collections.abc import Iterable

from shmbroker.netbridge.cluster.said import Announcement


class Arrivals:
    def __init__(self) -> None:
        self._there: frozenset[bytes] = frozenset()
        """Processes."""

    def see(self, there: Iterable[Announcement]) -> list[Announcement]:
        """Those that are there from now on; of these who was not, in this process."""
        lives = list(there)
        came = [each for each in lives if each.incarnation not in self._there]
        self._there = frozenset(each.incarnation for each in lives)
        return came
