"""An end of a link between independent brokers: both ends may ship, and say what their owner says.

It carries out what its machine says as `carrier/end.py` does.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shmbroker.netbridge.link.action import (
    Action,
    Became,
    BeginHistory,
    CloseSink,
    Ended,
    Heard,
    OpenSink,
    Pour,
    Read,
    Release,
    Seek,
    SetAside,
    Skip,
    Unserved,
    Waits,
)
from shmbroker.netbridge.link.ending import Reason, State
from shmbroker.netbridge.link.handshake import Far, Near
from shmbroker.netbridge.simulation.end import FULL_SECONDS, TIMES, LinkEnd
from shmbroker.netbridge.simulation.peers.sink import Sink
from shmbroker.netbridge.simulation.peers.source import Shelf, Source
from shmbroker.netbridge.simulation.world import Wrong
from shmbroker.netbridge.wire.frame import Body, Frame, Talk
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Level, TargetKind

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.peers.broker import Broker


class PeerEnd(LinkEnd):
    def __init__(self, broker: Broker, handshake: Near | Far) -> None:
        super().__init__(broker.host, handshake, broker.watch)
        self.broker = broker
        self.source: Source | None = None
        self._sinks: dict[int, tuple[Sink, Level]] = {}
        self._is_abandoned = False

    @property
    def link(self) -> str:
        return self.machine.handshake.link

    @property
    def peer(self) -> str:
        """The node at the other end, once it is met."""
        peer = self.machine.handshake.peer
        return "" if peer is None else peer.node.decode().strip(".")

    @property
    def is_up(self) -> bool:
        return self.machine.state is State.UP

    @property
    def waits(self) -> bool:
        """What it ships is not all at the other end."""
        return self.source is not None and bool(self.source.shelf.memory().messages)

    def abandon(self) -> None:
        """Its owner has another one, or none."""
        self._is_abandoned = True
        if self.connection is not None:
            self.connection.close(self.side)

    # --- of its owner -------------------------------------------------------------------------

    def say(self, body: Body) -> None:
        self.does(self.machine.say(Talk(body), self.host.clock))

    def ships(self, shelf: Shelf, target: str, kind: TargetKind) -> None:
        self.source = Source(shelf)
        outlet = self.source.outlet(self.broker.node.name, self.link, target, kind)
        self.does(self.machine.open(outlet, self.host.clock))

    def news(self) -> None:
        """There may be more to ship."""
        if self.source is not None:
            self.machine.news(0)
            self.does([])

    def malformed(self, error: Malformed) -> None:
        self.does(self.machine.malformed(error, self.host.clock))

    def refuse(self, reason: Reason, why: str) -> None:
        self.does(self.machine.refuse(reason, why, self.host.clock))

    # --- what it does -------------------------------------------------------------------------

    def carry_out(self, action: Action) -> None:
        if isinstance(action, (Seek, Read, Release, SetAside, BeginHistory)):
            self._of_source(action)
        elif isinstance(action, (OpenSink, Pour, Skip, CloseSink)):
            self._of_sink(action)
        elif isinstance(action, Heard):
            self._heard(action.frame)
        elif isinstance(action, Became):
            self.broker.became(self, action.state)
        elif isinstance(action, Waits):
            self.broker.is_passive(self)
        elif isinstance(action, Unserved):
            self.refuse(Reason.UNSERVED, action.reason)
        elif not (isinstance(action, Ended) and self._is_abandoned):
            super().carry_out(action)

    def _heard(self, frame: Frame) -> None:
        if isinstance(frame, Talk):
            self.broker.heard(self, frame.body)

    def _of_source(self, action: Seek | Read | Release | SetAside | BeginHistory) -> None:
        source, clock = self.source, self.host.clock
        assert source is not None
        if isinstance(action, Seek):
            source.seek(action.position)
        elif isinstance(action, Read):
            batch = source.read(action.messages, action.bytes)
            self.does(self.machine.read(0, batch, clock))
        elif isinstance(action, Release):
            source.retire(action.end)
            self.does(self.machine.released(0, action.end, clock))
        elif isinstance(action, SetAside):
            message = source.shelf.memory().messages.get(action.position)
            if message is not None:
                self.broker.refused(self, message, action.reason)
            source.drop(action.position)
            self.does(self.machine.dealt(0, action.position, clock))
        else:
            raise Wrong(f"{self.host.name}: a new history of {source.shelf.name} is wanted")

    def _of_sink(self, action: OpenSink | Pour | Skip | CloseSink) -> None:
        target, clock = action.target, self.host.clock
        if isinstance(action, OpenSink):
            sink = Sink(
                self.broker.node.store, action.origin, partial(self.broker.verdict, self),
                partial(self.broker.watch.knew, self.host.name), self._soon(target),
            )  # fmt: skip
            self._sinks[target] = sink, action.level
            largest = TIMES.max_message_size // 2
            self.does(self.machine.opened(target, sink.mark, sink.confirmed, largest, clock))
        elif isinstance(action, Pour):
            told = self._sinks[target][0].pour(action.records)
            self.does(self.machine.poured(target, told, clock))
            if told.is_full:
                self.host.later(FULL_SECONDS, partial(self._again, target))
        elif isinstance(action, Skip):
            self._sinks[target][0].skip(action.end)
        else:
            sink, level = self._sinks.pop(target)
            if action.forgets and level is Level.SHM:
                sink.forget()

    def _soon(self, target: int) -> partial[None]:
        return partial(self.host.at, 0.0, partial(self._synced, target))

    def _synced(self, target: int) -> None:
        if target in self._sinks and self.broker.runs:
            end = self._sinks[target][0].confirmed
            self.does(self.machine.confirmed(target, end, self.host.clock))

    def _again(self, target: int) -> None:
        self.does(self.machine.room(target, self.host.clock))

    def has_ended(self, reason: Reason) -> None:
        self.broker.ended(self)
