"""Hears announcements, in a thread of its own: what strangers send keeps no link waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.discovered.registry import RegistrySource
from shmbroker.netbridge.discovered.udp import UdpSource
from shmbroker.netbridge.discovered.wake import Wake
from shmbroker.netbridge.discovery.entries import Entries, Entry, Line
from shmbroker.netbridge.discovery.option import UDP, Discovery
from shmbroker.netbridge.security.signature import Signature
from shmbroker.netbridge.security.stretched import Stretched

Tell = Callable[[Mapping[str, Any]], None]
Changed = Callable[[tuple[Entry, ...]], None]
RETRY_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 3600.0
END_SECONDS: Final = 2.0
"""A folder on another host may hang: then nobody waits for it."""


class Discoverer(Closable):
    def __init__(
        self,
        discovery: Discovery,
        keys: Sequence[Stretched],
        changed: Changed,
        tell: Tell = lambda _: None,
    ) -> None:
        """`changed`: is given all entries, in the thread of this one."""
        self.found: tuple[Entry, ...] = ()
        self.discovery = discovery
        self._changed, self._tell = changed, tell
        self._entries = Entries(discovery.refresh, Signature(keys, discovery.means.place))
        self._wake = Wake()
        kind = UdpSource if discovery.means.type == UDP else RegistrySource
        self._source = kind(discovery.means, self._wake, discovery.refresh)
        self._why = ""
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="shmbroker-discover", daemon=True)
        self._thread.start()

    def show(self) -> dict[str, Any]:
        """What people see, from any thread."""
        entries = [
            {"name": each.name, "address": each.uri, "node": each.node.hex(),
             "standing": "live" if each.is_live else "backup", "epoch": each.epoch}
            for each in self.found
        ]  # fmt: skip
        ignored = dict(self._entries.ignored)
        return {"group": self.discovery.name, "entries": entries, "ignored": ignored}

    def close(self) -> None:
        """Nothing is told afterwards.  Not from `changed`."""
        if not self._is_closed:
            self._is_closed = True
            self._wake.set()
            self._thread.join(END_SECONDS)
            if not self._thread.is_alive():
                self._wake.close()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            self._turn()
        self._source.close()

    def _turn(self) -> None:
        entries = self._entries
        patience = min(max(0.0, entries.deadline - time.monotonic()), LONGEST_SECONDS)
        come = self._read(patience)
        lines: list[Line] = []
        for data in come:
            lines += entries.heard(data, time.monotonic())
        lines += entries.tick(time.monotonic())
        if self._is_closed:
            return
        for line in lines:
            self._line(line.level, line.state, line.detail)
        if entries.found != self.found:
            self.found = entries.found
            self._changed(self.found)

    def _read(self, patience: float) -> list[bytes]:
        try:
            found = self._source.read(patience)
        except OSError as error:
            if not self._why:  # once, however often it is tried
                self._line("error", "hears nothing", str(error))
            self._why = str(error)
            self._source.close()
            self._wake.wait(min(patience, RETRY_SECONDS))
            return []
        if self._why:
            self._line("info", "hears again", self.discovery.means.place)
            self._why = ""
        return found

    def _line(self, level: str, state: str, detail: str) -> None:
        self._tell({"event": "discovery", "level": level, "discovery": self.discovery.name,
                    "state": state, "detail": detail})  # fmt: skip
