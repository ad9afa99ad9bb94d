"""One end of a connection: its machine, and what carries out what the machine says."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Protocol

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.opening import Opening
from shmbroker.netbridge.carrier.source import Source
from shmbroker.netbridge.carrier.target import Target
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.action import (
    Action,
    Became,
    BeginHistory,
    CloseSink,
    Ended,
    Heard,
    Line,
    OpenSink,
    Pour,
    Read,
    Release,
    Seek,
    Send,
    SetAside,
    Skip,
    Unserved,
    Waits,
)
from shmbroker.netbridge.link.ending import Ending, State
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.outflow import Batch, Outflow
from shmbroker.netbridge.wire.codec import decode, encode
from shmbroker.netbridge.wire.frame import Body, Frame
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.value import value
from shmbroker.netbridge.wire.words import RETURNED, Role, is_of_agent, is_of_network

TURNS_MAX = 16
"""Steps of a machine in a turn of the thread; then others have theirs."""
AGAIN_SECONDS = 0.1
"""When a message is set aside again for which there was no room."""
NOT_CARRIED = "this broker takes no messages of its cluster: its max-hops is 0"


class Owner(Protocol):
    """A link or a listener."""

    def wakes(self, end: End) -> None:
        """The end wants to be woken earlier than it has said."""

    def send(self, end: End, message: bytes) -> bool:
        """False: the connection is gone."""

    def became(self, end: End, state: State) -> None: ...

    def waits(self, end: End, live: str) -> None: ...

    def ended(self, end: End, how: Ending) -> None: ...

    def unserved(self, end: End, reason: str) -> None:
        """The far end does not open a target."""

    def told(self, what: str, detail: str) -> None:
        """For the log."""

    def heard(self, end: End, frame: Frame) -> None:
        """Of the session of a program."""


class Meter(Protocol):
    """Counts what a link ships, and what it fetches."""

    def read(self, flow: Outflow, batch: Batch) -> None: ...

    def released(self, flow: Outflow) -> None: ...

    def set_aside(self) -> None: ...

    def returned(self, *, is_claimed: bool) -> None: ...

    def bound(self, bindings: int) -> None:
        """So many are copied to the other broker."""

    def poured(self, messages: int, size: int) -> None: ...


@value
class Again:
    """What found no room in the dead-letter queue is tried once more."""

    target: int
    position: int


class End:
    def __init__(
        self, thread: NetworkThread, machine: Machine, owner: Owner, meter: Meter | None = None
    ) -> None:
        self.thread = thread
        self.machine = machine
        self.owner = owner
        self.meter = meter
        self.sources: dict[int, Source] = {}
        self.targets: dict[int, Target] = {}
        self._opening: dict[int, Opening] = {}
        self._waiting: deque[Action | Again] = deque()
        self._is_busy = False
        self._aside: dict[tuple[int, int], float] = {}
        """Target and position of what finds no room in the dead-letter queue, and when again."""
        self._naps: dict[int, float] = {}
        """Targets that lack memory, and when they are poured into again."""
        self.due = machine.deadline
        """When it wants to be woken.  The owner looks itself when it has made the end, and when it
        has woken it: a time that became later is found then."""
        self.hears: Callable[[End, Frame], None] = owner.heard
        """What comes of its session: the owner, or whom the owner has named."""
        self.address = ""
        """Of the other end, if that has connected."""
        self.began_at = time.time_ns()
        self.received_frames = self.received_bytes = self.sent_frames = self.sent_bytes = 0

    # --- what happens to it -------------------------------------------------------------------

    def arrived(self, message: Body) -> None:
        self.received_frames += 1
        self.received_bytes += len(message)
        try:
            number, frame = decode(message, self.machine.times.max_frame_size)
        except Malformed as error:
            self.does(self.machine.malformed(error, time.monotonic()))
        else:
            day_ms = time.time_ns() // 1_000_000
            self.does(self.machine.received(number, frame, time.monotonic(), day_ms))

    def woken(self, now: float, heard: float | None = None) -> None:
        """`heard`: until then all that had come is told; now, unless it is given."""
        if self._aside:
            self.does([Again(*each) for each, at in self._aside.items() if at <= now])
        for target in [each for each, at in self._naps.items() if at <= now]:
            if self._naps.pop(target, None) is not None:  # else the link has ended meanwhile
                self._room(target)
        self.does(self.machine.tick(now, heard) if now >= self.machine.deadline else [])

    def connected(self) -> None:
        self.does(self.machine.connected(time.monotonic()))

    def lost(self) -> None:
        self.does(self.machine.disconnected(time.monotonic()))

    def say(self, frame: Frame) -> None:
        """Of the session that is attached to it.

        If nothing waits that comes before it, it goes at once: a time of the machine becomes later
        by that, and nothing else.
        """
        said = self.machine.say(frame, time.monotonic())
        if self._waiting:
            self.does(said)
        else:
            for each in said:
                self._send(each)

    def news(self, target: int) -> None:
        self.machine.news(target)
        self.does([])

    def _confirmed(self, target: int, end: int) -> None:
        self.does(self.machine.confirmed(target, end, time.monotonic()))

    def _room(self, target: int) -> None:
        self.does(self.machine.room(target, time.monotonic()))

    # --- what it does -------------------------------------------------------------------------

    def does(self, actions: Iterable[Action | Again]) -> None:
        """Carry out, one action after the other, and what comes of it."""
        self._waiting.extend(actions)
        if self._is_busy:
            return
        self._is_busy = True
        machine, waiting, turns = self.machine, self._waiting, 0
        while True:
            while waiting:
                action = waiting.popleft()
                try:
                    CARRIES[type(action)](self, action)
                except Error as error:  # a queue was deleted, a gate was taken from us, ...
                    self.does(machine.malformed(Malformed(str(error)), time.monotonic()))
            if turns == TURNS_MAX:
                has_work = machine.has_work
                break
            turns += 1
            done = machine.turn(time.monotonic()) if machine.outflows else []
            if not done:
                has_work = False
                break
            waiting.extend(done)
        self._is_busy = False
        due = 0.0 if has_work else machine.deadline
        if self._aside or self._naps:
            due = min((due, *self._aside.values(), *self._naps.values()))
        is_earlier = due < self.due
        self.due = due
        if is_earlier:
            self.owner.wakes(self)

    # --- of a source --------------------------------------------------------------------------

    def _send(self, action: Send) -> None:
        message = encode(action.frame, action.number)
        self.sent_frames += 1
        self.sent_bytes += len(message)
        if not self.owner.send(self, message):
            self.lost()

    def _seek(self, action: Seek) -> None:
        self.sources[action.target].seek(action.position)

    def _read(self, action: Read) -> None:
        batch = self.sources[action.target].read(action.messages, action.bytes)
        self.does(self.machine.read(action.target, batch, time.monotonic()))
        if self.meter is not None and batch is not None:
            self.meter.read(self.machine.outflows[action.target], batch)

    def _release(self, action: Release) -> None:
        self.sources[action.target].retire(action.end)
        self.does(self.machine.released(action.target, action.end, time.monotonic()))
        if self.meter is not None:
            self.meter.released(self.machine.outflows[action.target])

    def _refused(self, action: SetAside) -> None:
        if action.reason == RETURNED:
            is_claimed = self.sources[action.target].returned(action.position, action.reason)
            if self.meter is not None:
                self.meter.returned(is_claimed=is_claimed)
            self.does(self.machine.dealt(action.target, action.position, time.monotonic()))
            return
        self.owner.told("refused by the target", f"message {action.position}: {action.reason}")
        if self.meter is not None:
            self.meter.set_aside()
        self._set_aside(action.target, action.position)

    def _begin_history(self, _: BeginHistory) -> None:
        self.owner.told("a target knows more than its queue ever had", "nothing is sent to it")

    def _tries_again(self, action: Again) -> None:
        if (action.target, action.position) in self._aside:  # else the link has ended meanwhile
            self._set_aside(action.target, action.position)

    def _set_aside(self, target: int, position: int) -> None:
        if self.sources[target].set_aside(position):
            self._aside.pop((target, position), None)
            self.does(self.machine.dealt(target, position, time.monotonic()))
        else:
            self._aside[target, position] = time.monotonic() + AGAIN_SECONDS

    # --- of a target --------------------------------------------------------------------------

    def _pour(self, action: Pour) -> None:
        target = self.targets[action.target]
        told = target.pour(action.records, redelivered=action.redelivered)
        if target.nap:
            self._naps[action.target] = time.monotonic() + target.nap
        if self.meter is not None:
            self.meter.poured(told.messages, told.bytes)
        self.does(self.machine.poured(action.target, told, time.monotonic()))

    def _skip(self, action: Skip) -> None:
        target = self.targets[action.target]
        target.skip(action.end)
        self._confirmed(action.target, target.confirmed)

    def _close_sink(self, action: CloseSink) -> None:
        if action.target in self._opening:
            self._drop_opening(action.target)
        elif action.target in self.targets:
            self._naps.pop(action.target, None)
            self.targets.pop(action.target).close(forgets=action.forgets)

    def _open(self, said: OpenSink) -> None:
        handshake = self.machine.handshake
        if handshake.role is Role.CLUSTER and not self.thread.node:
            self.does(self.machine.unopened(said.target, NOT_CARRIED, time.monotonic()))
            return
        travels = is_of_network(handshake.role, handshake.link)
        is_agent = is_of_agent(handshake.role, handshake.link)
        agent = handshake.peer.node if is_agent and handshake.peer is not None else b""
        has_node = travels or is_agent or handshake.role is Role.CLUSTER
        node = self.thread.node if has_node else b""
        retention = self.machine.times.origin_retention
        opening = Opening(self.thread.broker, said, retention, node, travels=travels, agent=agent)
        self._opening[said.target] = opening
        self.thread.worker.do(opening.begin, partial(self._opened, opening), of=said.origin)

    def _opened(self, opening: Opening, failure: Exception | None) -> None:
        number, now = opening.said.target, time.monotonic()
        if self._opening.get(number) is not opening:
            return  # nobody wants it any more: the worker drops it
        del self._opening[number]
        if isinstance(failure, Error):
            self.does(self.machine.unopened(number, str(failure), now))
            return
        if failure is not None:
            raise failure
        target = self.targets[number] = Target(
            self.thread,
            opening,
            partial(self._confirmed, number),
            partial(self._room, number),
        )
        largest = self.machine.times.max_message_size
        self.does(self.machine.opened(number, target.mark, target.confirmed, largest, now))

    def _drop_opening(self, number: int) -> None:
        opening = self._opening.pop(number)
        self.thread.worker.do(opening.drop, lambda _: None, of=opening.said.origin)

    # --- of its life --------------------------------------------------------------------------

    def _heard(self, action: Heard) -> None:
        self.hears(self, action.frame)

    def _became(self, action: Became) -> None:
        self.owner.became(self, action.state)

    def _waits(self, action: Waits) -> None:
        self.owner.waits(self, action.live)

    def _unserved(self, action: Unserved) -> None:
        self.owner.unserved(self, action.reason)

    def _told(self, action: Line) -> None:
        self.owner.told(action.alert.value, action.detail)

    def _ended(self, action: Ended) -> None:
        self.close()
        self.owner.ended(self, action.ending)

    def close(self) -> None:
        """Let go of the rings; marks and gates stay."""
        self._aside.clear()
        self._naps.clear()
        for number in tuple(self._opening):
            self._drop_opening(number)
        for source in self.sources.values():
            source.close()
        self.sources.clear()
        for target in self.targets.values():
            target.close(forgets=False)
        self.targets.clear()


CARRIES: Final[dict[type[Any], Callable[[End, Any], None]]] = {
    Send: End._send,
    Seek: End._seek,
    Read: End._read,
    Release: End._release,
    SetAside: End._refused,
    Again: End._tries_again,
    BeginHistory: End._begin_history,
    Pour: End._pour,
    OpenSink: End._open,
    Skip: End._skip,
    CloseSink: End._close_sink,
    Heard: End._heard,
    Became: End._became,
    Waits: End._waits,
    Unserved: End._unserved,
    Line: End._told,
    Ended: End._ended,
}
"""How each action is carried out."""
