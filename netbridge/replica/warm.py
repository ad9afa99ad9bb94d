"""What a replica has: a journal of its own, and rings that nobody sees before a takeover."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.broker.applier import Applier
from shmbroker.ipc.broker.journaler import Journaler, begin_restoring
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.journal.shipping import last_places
from shmbroker.ipc.vhost import vhost as vhosts

JOURNAL: Final = "journal"
SAVED: Final = "oldreplica."


class Warm(Closable):
    """Of one thread at a time.  What its journal has is read at the beginning."""

    def __init__(
        self,
        store: Path,
        vhost: str,
        *,
        node: bytes,
        arena_bytes: int,
        segment_bytes: int = 0,
        resync_bytes: int = 0,
        group: str = "",
    ) -> None:
        self.store, self.vhost = store, vhost
        self._node, self._segment_bytes, self._resync_bytes = node, segment_bytes, resync_bytes
        folder = store / JOURNAL
        folder.mkdir(mode=0o700, exist_ok=True)
        self.own, self.repeats = last_places(folder)
        """The last frame of its journal, and the one of the live that it repeats."""
        if vhosts.exists(vhost):
            vhosts.retire(vhost)  # of the past
        self._journaler: Journaler | None = None
        self.broker = begin_restoring(vhost, name="replica", arena_bytes=arena_bytes, group=group)
        try:
            self.journal = Journal(folder, epoch=None, segment_bytes=segment_bytes, node=node)
            self.applier = Applier(self.broker, self.journal)
            with Replay(folder) as replay:
                self.applier.read(replay)
                self.journal.begin(replay.report().epoch, replay)
            self.journal.keep(None, resync_bytes)
            self.prepare()
        except BaseException:
            self.close()
            raise

    @property
    def place(self) -> Place | None:
        """The last frame of the live that it has."""
        return self.applier.place()

    def prepare(self) -> None:
        """So that taking over is quick: to write over a segment takes longer than all else."""
        if self._journaler is None:
            self._journaler = Journaler(
                self.store / JOURNAL, node=self._node, segment_bytes=self._segment_bytes
            )

    @property
    def standing(self) -> bytes:
        """The newest that its journal has."""
        return self.applier.standing()

    def founds(self, node: bytes) -> None:
        """The id of the node, if it was not known when this was made."""
        if node != self._node and self._journaler is not None:
            self._journaler.close()
            self._journaler = None
        self._node = node
        self.prepare()

    def take_over(
        self, epoch: int, begins: Callable[[Journaler], None] = lambda _: None
    ) -> tuple[Broker, Journaler]:
        """Everybody sees the rings, and the first frame of this epoch is written.

        `begins`: what the journaler is told before it starts.
        """
        self.prepare()
        journaler, self._journaler = self._journaler, None
        assert journaler is not None
        begins(journaler)
        self.applier.finish()
        self.applier.close()
        self.journal.close()
        journaler.keep(None, self._resync_bytes)
        journaler.start(self.broker, epoch)
        return self.broker, journaler

    def close(self) -> None:
        """The rings go, the journal stays."""
        if self._journaler is not None:
            self._journaler.close()
            self._journaler = None
        for name in ("applier", "journal"):
            if hasattr(self, name):
                getattr(self, name).close()
        self.broker.close()
        vhosts.delete(self.vhost, force=True)


def set_aside(store: Path, most: int) -> Path | None:
    """The journal there, under a name with the next number; `most` are kept, -1: all.

    What it is called now; None: there was none, or none is kept.
    """
    folder = store / JOURNAL
    if not folder.exists() or not any(folder.glob("*.journal")):
        return None
    saved = _saved(store)
    place = store / f"{SAVED}{saved[-1][0] + 1 if saved else 1}"
    folder.rename(place)
    for _, old in _saved(store)[: None if most == 0 else -most] if most >= 0 else []:
        shutil.rmtree(old)
    return place if place.exists() else None


def _saved(store: Path) -> list[tuple[int, Path]]:
    """Ascending."""
    numbers = [
        (int(path.name[len(SAVED) :]), path)
        for path in store.glob(f"{SAVED}*")
        if path.name[len(SAVED) :].isdigit()
    ]
    return sorted(numbers)
