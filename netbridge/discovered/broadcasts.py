"""All that a broker announces, as its configuration says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.discovered.announcer import Announcer
from shmbroker.netbridge.discovery.option import Broadcast
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.security.stretched import Stretched

Wanted = Mapping[str, tuple[Broadcast, tuple[Stretched, ...]]]
"""By name, with the keys that sign."""


def signed(broadcasts: Mapping[str, Broadcast], credentials: Credentials) -> Wanted:
    found = {}
    for name, each in broadcasts.items():
        credential = credentials.named(each.credentials)
        assert credential is not None, "the configuration was checked"
        found[name] = each, credential.keys
    return found


class Broadcasts(Closable):
    """Of one thread at a time."""

    def __init__(self, name: str, tell: Callable[[Mapping[str, Any]], None]) -> None:
        """`name`: of this broker."""
        self._name, self._tell = name, tell
        self.wanted: Wanted = {}
        self._is: tuple[bytes, int, bool] | None = None
        self._running: dict[str, Announcer] = {}

    def wants(self, wanted: Wanted) -> None:
        """From now on these, and no others."""
        for name in list(self._running):
            if self.wanted.get(name) != wanted.get(name):
                self._running.pop(name).close()
        self.wanted = wanted
        self._look()

    def becomes(self, node: bytes, epoch: int, *, is_live: bool) -> None:
        """What this broker is; before that it announces nothing."""
        self._is = node, epoch, is_live
        self._look()

    def close(self) -> None:
        """It announces nothing, until it becomes something again."""
        self._is = None
        for each in self._running.values():
            each.close()
        self._running.clear()

    def _look(self) -> None:
        if self._is is None:
            return
        node, epoch, is_live = self._is
        for name, (broadcast, keys) in self.wanted.items():
            if name not in self._running:
                self._running[name] = Announcer(broadcast, keys, self._name, self._tell)
            self._running[name].becomes(node, epoch, is_live=is_live)
