"""The brokers of one node, as the network of one of them knows the others: who is live, and who
waits to take over.

Brokers that share a store tell it by small files there, members of a replicated node over the
links between them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.mount import mount_of
from shmbroker.ipc.instance.watch import Watch
from shmbroker.netbridge.broker import standby, whereabouts
from shmbroker.netbridge.broker.whereabouts import Whereabouts

NOWHERE: Final = Whereabouts(0, "", "", ())


class Group(Protocol):
    """Called in the thread of `owner.Owner`."""

    def serves(self, here: Whereabouts) -> None:
        """This broker is live."""

    def waits(self, epoch: int, uri: str) -> None:
        """This broker is passive, and the live of this epoch is known."""

    def leaves(self) -> None:
        """This broker waits no more."""

    def live(self, epoch: int) -> Whereabouts | None:
        """None: the live of this epoch has not said where it is."""

    def backups(self, epoch: int) -> tuple[str, ...]:
        """The addresses of those that wait for the live of this epoch to end."""

    def original(self, epoch: int) -> str:
        """The address of the one that the live of this epoch gives its role back to; empty: it is
        not known."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Call this whenever there are other backups, from any thread."""


class OfStore:
    def __init__(self, config: Config) -> None:
        self._store: Path = config.store
        self._name, self._is_original = config.name, config.role == "live"

    def serves(self, here: Whereabouts) -> None:
        whereabouts.write(self._store, here)

    def waits(self, epoch: int, uri: str) -> None:
        standby.write(self._store, self._name, epoch, uri, is_original=self._is_original)

    def leaves(self) -> None:
        standby.remove(self._store, self._name)

    def live(self, epoch: int) -> Whereabouts | None:
        return whereabouts.read(self._store, epoch)

    def backups(self, epoch: int) -> tuple[str, ...]:
        return standby.read(self._store, epoch)

    def original(self, epoch: int) -> str:
        return next(iter(standby.read(self._store, epoch, originals=True)), "")

    def watch(self, changed: Callable[[], None]) -> None:
        """In a thread that sleeps until a broker begins or ends to wait."""
        watch = Watch(standby.folder_of(self._store), is_remote=mount_of(self._store).is_remote)

        def run() -> None:
            while True:
                watch.wait()
                changed()

        threading.Thread(target=run, name="network standby", daemon=True).start()


class OfMembers:
    """Told from the network thread of the member."""

    def __init__(self) -> None:
        self._live = NOWHERE
        self._backups: tuple[str, ...] = ()
        self._changed: Callable[[], None] = lambda: None

    def live_is(self, uri: str) -> None:
        """Empty: nobody is known to serve."""
        self._live = Whereabouts(0, uri, "", ())

    def backups_are(self, uris: tuple[str, ...]) -> None:
        if uris != self._backups:
            self._backups = uris
            self._changed()

    def serves(self, here: Whereabouts) -> None: ...

    def waits(self, epoch: int, uri: str) -> None: ...

    def leaves(self) -> None: ...

    def live(self, epoch: int) -> Whereabouts | None:
        return self._live

    def backups(self, epoch: int) -> tuple[str, ...]:
        return self._backups

    def original(self, epoch: int) -> str:
        return ""  # a handover says to whom

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed
