"""What a replica has: a journal of its own, and rings that nobody sees before a takeover."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.broker.applier import Applier
from shmbroker.ipc.broker.journaler import Journaler, begin_restoring, noted
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal.history import last_places
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.replica.aside import JOURNAL


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
            with Replay(folder, noted=noted(self.broker)) as replay:
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
        self,
        epoch: int,
        begins: Callable[[Journaler], None] = lambda _: None,
        visible: Callable[[], None] = lambda: None,
        *,
        of_another: bool,
    ) -> tuple[Broker, Journaler]:
        """Everybody sees the rings, and the first frame of this epoch is written.

        `begins`: what the journaler is told before it starts.  `visible`: called between the two,
        for what can be made ready while the disk works.  `of_another`: another member was live
        before, so what is not replicated is left out, and that first frame says so.

        Call `let_go` when there is time, and before the broker is closed.
        """
        self.prepare()
        journaler, self._journaler = self._journaler, None
        assert journaler is not None
        begins(journaler)
        self.applier.finish(takes_over=of_another)
        visible()
        self.journal.leave()
        self.journal.close()  # what it has made ready has the name of the segment that comes next
        journaler.keep(None, self._resync_bytes)
        journaler.start(self.broker, epoch)
        return self.broker, journaler

    def let_go(self) -> None:
        """Of what it had to know while it followed, as the ids of messages: ten milliseconds."""
        self.applier.close()

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
