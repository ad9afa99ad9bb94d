"""One end of a link, from its connection to its end: events and a time in, actions out.

    CONNECTING --connected--> HANDSHAKING --welcome--> SYNCING --targets are open--> UP
    HANDSHAKING --the far end is passive--> PEER_PASSIVE --it serves by now--> HANDSHAKING
    any --whatever ends it--> one Ended with one reason; nothing comes after it

Both ends may be sources of targets; each counts its own.  Times are seconds of one clock that only
rises; `day_ms` is the time of day, for which nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from shmbroker.netbridge.link.action import Action, Became, Ended, Heard, Owes, Send, Waits
from shmbroker.netbridge.link.broken import Broken, broken
from shmbroker.netbridge.link.ending import Ending, Reason, State, ending
from shmbroker.netbridge.link.handshake import Far, Near, unexpected
from shmbroker.netbridge.link.heartbeat import Heartbeat
from shmbroker.netbridge.link.inflow import Inflow, Poured
from shmbroker.netbridge.link.outflow import Batch, Outflow, Outlet
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire.frame import (
    OF_CLUSTERS,
    OF_NETWORKS,
    OF_PAIRS,
    OF_REPLICATION,
    OF_SESSIONS,
    OF_VOTES,
    Active,
    Beat,
    Closing,
    Confirm,
    Credit,
    Drained,
    Frame,
    Moved,
    Open,
    Opened,
    Part,
    Passed,
    Records,
    Reject,
    Resume,
    Unopened,
)
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import OF_PROGRAMS, PAIR_LINK, Role, is_of_agent, is_of_network

Steps = Iterator[Frame | Action]
CONFIRM_SECONDS = 0.005
"""Confirms of a few messages are told after so long."""


class Machine:
    def __init__(self, times: LinkTimes, handshake: Near | Far, now: float) -> None:
        self.times = times
        self.handshake = handshake
        self.is_near = isinstance(handshake, Near)
        self.state = State.CONNECTING
        self.ending: Ending | None = None
        self.why_passive = ""
        """What a far end that is passive has said of that."""
        self.heartbeat = Heartbeat(times, now, in_slots=not self.is_near)
        self.until = now + times.connect_timeout
        """Of connecting, of the handshake, of waiting for confirms."""
        self.sent = self.received_frames = 0
        self.outlets: list[Outlet] = []
        self.outflows: dict[int, Outflow] = {}
        self.inflows: dict[int, Inflow] = {}
        self.closing: Ending | None = None
        """We have said that we close, or heard it."""
        self.owing: dict[int, float] = {}
        """Targets, and when their confirms are told."""
        self.has_drained = self.peer_has_drained = False
        self._of_role: frozenset[type[Frame]] = frozenset()
        """Frames that are not the link's own, from the handshake on."""

    # --- its life -----------------------------------------------------------------------------

    def connected(self, now: float) -> list[Action]:
        self.heartbeat.heard_at = now
        self.until = now + self.times.handshake_timeout
        self.state = State.HANDSHAKING
        return self._run(self.handshake.begin(self.times), now)

    def received(self, number: int, frame: Frame, now: float, day_ms: int) -> list[Action]:
        if self.state is State.UP and number == self.received_frames:
            steps = self._of_flow(frame)
            if steps is not None:
                self.received_frames += 1
                self.heartbeat.heard_at = now
                return self._run(steps, now)
        return self._run(self._received(number, frame, now, day_ms), now)

    def malformed(self, error: Malformed, now: float) -> list[Action]:
        return self._break(ending(Reason.MALFORMED, str(error)), now)

    def disconnected(self, now: float) -> list[Action]:
        """The socket closed, or was never made; after a `Closing` that is no news."""
        return self._break(self.closing or ending(Reason.DISCONNECTED), now)

    def tick(self, now: float, heard: float | None = None) -> list[Action]:
        """At the deadline.  What has been received is to be told before; if only what had come by
        `heard`, that is the time by which it is judged whether the peer is late."""
        return self._run(self._tick(now, now if heard is None else heard), now)

    @property
    def deadline(self) -> float:
        if self.ending is not None:
            return NEVER
        if self.state in BEFORE:
            return self.until
        due = self.heartbeat.due
        if self.owing:
            due = min(due, next(iter(self.owing.values())))
        return due if self.closing is None else min(due, self.until)

    def stop(self, now: float, detail: str = "") -> list[Action]:
        """In good order: what is on its way is confirmed first, if that is soon enough."""
        return self._run(self._close(ending(Reason.STOPPED, detail), Closing(detail), now), now)

    def move(self, uri: str, now: float) -> list[Action]:
        """The other end shall go to another broker."""
        return self._run(self._close(ending(Reason.STOPPED, uri, uri), Moved(uri), now), now)

    def refuse(self, reason: Reason, detail: str, now: float) -> list[Action]:
        """The owner makes no use of it."""
        return self._break(ending(reason, detail), now)

    def supersede(self, now: float) -> list[Action]:
        """The other end has made a newer connection."""
        return self._break(ending(Reason.SUPERSEDED), now)

    def activate(self, now: float) -> list[Action]:
        """This end was passive, said so, and serves now."""
        return self._run(self._activate(now), now)

    def go_on(self, now: float) -> list[Action]:
        """The far end was passive, serves now, and is wanted: the rest of the handshake."""
        return self._run(self.handshake.again(), now)

    # --- of a session -------------------------------------------------------------------------

    def say(self, frame: Frame, now: float) -> list[Send]:
        """What the session of a program says, if the link is there still."""
        goes = self.state in OPEN and self.closing is None
        return [self._send(frame, now)] if goes else []

    # --- of a source --------------------------------------------------------------------------

    def open(self, outlet: Outlet, now: float) -> list[Action]:
        """Ship this ring; before or after the link is up."""
        self.outlets.append(outlet)
        return self._run(self._open(outlet), now) if self.state in OPEN else []

    def news(self, target: int) -> None:
        """There may be something to read."""
        if target in self.outflows:
            self.outflows[target].has_news = True

    @property
    def has_work(self) -> bool:
        """`turn` has something to do."""
        if self.ending is not None or self.state not in OPEN:
            return False
        for flow in self.outflows.values():
            if flow.parts or (self.closing is None and flow.has_work):
                return True
        return False

    def turn(self, now: float) -> list[Action]:
        """A bounded step of each flow that has something to do, if the socket takes more."""
        if self.state not in OPEN:
            return []
        turns = [flow.turn(self.closing is None) for flow in self.outflows.values()]
        return self._run([step for step in turns if step is not None], now)

    def read(self, target: int, batch: Batch | None, now: float) -> list[Action]:
        flow = self.outflows.get(target)
        return [] if flow is None else self._run(flow.read(batch), now)

    def released(self, target: int, end: int, now: float) -> list[Action]:
        """What was released is so for good."""
        if target in self.outflows:
            self.outflows[target].released_to(end)
        return self._run((), now) if self.closing is not None else []

    def dealt(self, target: int, position: int, now: float) -> list[Action]:
        """A message was set aside for good, by this connection or a former one."""
        if target not in self.outflows:
            self.outlets = [each.without(target, position) for each in self.outlets]
        return self._of(self.outflows, target, lambda flow: flow.dealt(position), now)

    # --- of a target --------------------------------------------------------------------------

    def opened(
        self, target: int, mark: int, confirmed: int, message_bytes: int, now: float
    ) -> list[Action]:
        step = lambda flow: flow.opened(mark, confirmed, message_bytes)  # noqa: E731
        return self._of(self.inflows, target, step, now)

    def unopened(self, target: int, reason: str, now: float) -> list[Action]:
        flow = self.inflows.pop(target, None)
        return [] if flow is None else self._run(flow.unopened(reason), now)

    def poured(self, target: int, told: Poured, now: float) -> list[Action]:
        flow = self.inflows.get(target)
        return [] if flow is None else self._run(flow.poured(told), now)

    def room(self, target: int, now: float) -> list[Action]:
        return self._of(self.inflows, target, lambda flow: flow.room(), now)

    def confirmed(self, target: int, end: int, now: float) -> list[Action]:
        return self._of(self.inflows, target, lambda flow: flow.has_confirmed(end), now)

    def want(self, target: int, messages: int, now: float) -> list[Action]:
        """With a window of 0: so many more messages, one after the other."""
        return self._of(self.inflows, target, lambda flow: flow.want(messages), now)

    # --- how steps are taken ------------------------------------------------------------------

    def _of(
        self, flows: dict[int, Any], target: int, step: Callable[[Any], Steps], now: float
    ) -> list[Action]:
        return self._run(step(flows[target]), now) if target in flows else []

    def _run(self, steps: Iterable[Frame | Action], now: float) -> list[Action]:
        done: list[Action] = []
        if self.ending is not None:
            return done
        try:
            for step in steps:
                if isinstance(step, Owes):
                    self.owing.setdefault(step.target, now + CONFIRM_SECONDS)
                else:
                    done.append(self._send(step, now) if isinstance(step, Frame) else step)
            if self.closing is not None:
                for step in self._drain():
                    done.append(self._send(step, now) if isinstance(step, Frame) else step)
        except Broken as error:
            done += self._end(error.ending)
        return done

    def _break(self, how: Ending, now: float) -> list[Action]:
        return self._end(how) if self.ending is None else []

    def _send(self, frame: Frame, now: float) -> Send:
        if isinstance(frame, Open):
            frame = replace(frame, clock_ns=int(now * NS))
        number = self.sent
        self.sent += 1
        self.heartbeat.sent_at = now
        return Send(frame, number)

    def _end(self, how: Ending) -> list[Action]:
        if how.reason is Reason.PASSIVE and self.state is State.HANDSHAKING:
            self.state, self.why_passive = State.PEER_PASSIVE, how.detail
            if not self.is_near:
                self.heartbeat.idle(self.handshake.beat_seconds)
            return [Became(self.state), *([Waits(how.uri)] if self.is_near else [])]
        self.ending = how
        self.state = how.state
        forgets = self.has_drained and self.peer_has_drained
        done: list[Any] = [step for flow in self.inflows.values() for step in flow.end(forgets)]
        return [*done, Ended(how)]

    def _tick(self, now: float, heard: float) -> Steps:
        if self.state in BEFORE:
            if heard >= self.until:
                is_new = self.state is State.CONNECTING
                reason = Reason.CONNECT_TIMEOUT if is_new else Reason.HANDSHAKE_TIMEOUT
                raise broken(reason, "")
            return
        if self.handshake.role in OF_PROGRAMS:
            # not between brokers: one that was paused is not to believe for longer that others
            # follow it
            self.heartbeat.stood_still(self.deadline, now)
        if self.heartbeat.is_silent(heard):
            raise broken(Reason.SILENCE, f"for {now - self.heartbeat.heard_at:.3f} s")
        if self.closing is not None and heard >= self.until:
            late = ending(Reason.PENDING_ACK_TIMEOUT, "not all was confirmed in time")
            raise Broken(late if self.closing.reason is Reason.STOPPED else self.closing)
        yield from self._confirm_owed(now)
        if self.heartbeat.is_due(now):
            yield Beat(self.handshake.ours.epoch)

    def _confirm_owed(self, now: float) -> Steps:
        for target in [each for each, at in self.owing.items() if at <= now]:
            del self.owing[target]
            if target in self.inflows:
                yield from self.inflows[target].tell_confirmed()

    def _activate(self, now: float) -> Steps:
        if self.state is State.PEER_PASSIVE and not self.is_near:
            yield Active()
            self._shakes_hands_again(now)

    def _shakes_hands_again(self, now: float) -> None:
        self.state = State.HANDSHAKING
        self.until = now + self.times.handshake_timeout

    # --- what comes ---------------------------------------------------------------------------

    def _received(self, number: int, frame: Frame, now: float, day_ms: int) -> Steps:
        if number != self.received_frames:
            detail = f"frame {number} came, not {self.received_frames}"
            raise broken(Reason.FRAMES_MISSING, detail)
        self.received_frames += 1
        self.heartbeat.heard_at = now
        if self.state is State.HANDSHAKING and not self._has_waited(frame):
            yield from self.handshake.take(frame, self.times, day_ms)
            if self.handshake.peer is not None:
                yield from self._met()
        elif isinstance(frame, Beat):
            self._beat(frame)
        elif self.state is State.PEER_PASSIVE:
            if not isinstance(frame, Active) or not self.is_near:
                raise unexpected(frame, "of a passive member")
            self._shakes_hands_again(now)
            yield Became(self.state)
        elif isinstance(frame, Open):
            yield from self._asked(frame, now)
        else:
            yield from self._flowed(frame, now)

    def _has_waited(self, frame: Frame) -> bool:
        """A beat of one to whom we were passive, who has not heard yet that we serve."""
        far = self.handshake
        return isinstance(frame, Beat) and isinstance(far, Far) and far.is_passive

    def _met(self) -> Steps:
        """The handshake is over."""
        self.heartbeat.agree(self.handshake.beat_seconds)
        self.state = State.SYNCING
        self._of_role = of_role(self.handshake.role, self.handshake.link)
        yield Became(self.state)
        for outlet in self.outlets:
            yield from self._open(outlet)
        yield from self._synced()

    def _synced(self) -> Steps:
        """A link with targets of which none is served is not up."""
        flows = self.outflows.values()
        if self.state is State.SYNCING and all(flow.is_answered for flow in flows):
            if not flows or any(flow.is_opened for flow in flows):
                self.state = State.UP
                yield Became(self.state)

    def _open(self, outlet: Outlet) -> Steps:
        flow = Outflow(outlet, self.handshake.frame_bytes)
        self.outflows[outlet.target] = flow
        yield from flow.begin()

    def _asked(self, frame: Open, now: float) -> Steps:
        if self.handshake.role not in SHIP:
            raise unexpected(frame, "of a link that ships nothing")
        if frame.target in self.inflows:
            raise unexpected(frame, f"of target {frame.target}, which is open")
        if len(self.inflows) >= INFLOWS_MAX:
            yield Unopened(frame.target, "there are too many targets")
            return
        later = int(now * NS) - frame.clock_ns
        flow = self.inflows[frame.target] = Inflow(frame, self.times, later)
        yield from flow.begin()

    def _beat(self, frame: Beat) -> None:
        peer = self.handshake.peer
        if peer is not None and frame.epoch != peer.epoch:
            raise broken(Reason.EPOCH, f"epoch {frame.epoch}, not {peer.epoch}")

    def _flowed(self, frame: Frame, now: float) -> Steps:
        steps = self._of_flow(frame)
        if steps is not None:
            yield from steps
            if self.state is State.SYNCING:
                yield from self._synced()
        elif type(frame) in STEPS:
            raise unexpected(frame, "of a target that is not open")
        elif isinstance(frame, (Closing, Moved)):
            self._closes(frame, now)
        elif isinstance(frame, Drained) and self.closing is not None:
            self.peer_has_drained = True
        else:
            raise unexpected(frame, "of a link that is up")

    def _of_flow(self, frame: Frame) -> Iterable[Frame | Action] | None:
        """Of a flow that is open, or of a session; None: it is another frame."""
        kind = type(frame)
        if kind in self._of_role:
            return (Heard(frame),)
        step = STEPS.get(kind)
        if step is None:
            return None
        flows: Any = self.outflows if kind in ANSWERS else self.inflows
        flow = flows.get(getattr(frame, "target", None))
        steps: Steps | None = None if flow is None else getattr(flow, step)(frame)
        return steps

    # --- closing ------------------------------------------------------------------------------

    def _close(self, how: Ending, frame: Frame, now: float) -> Steps:
        if self.state not in OPEN:
            raise Broken(how)
        if self.closing is None:
            self.closing = how
            self.until = now + self.times.pending_ack_timeout
            yield frame

    def _closes(self, frame: Closing | Moved, now: float) -> None:
        if self.closing is not None:
            return
        if isinstance(frame, Moved):
            self.closing = ending(Reason.MOVED, "", frame.uri)
        else:
            self.closing = ending(Reason.PEER_CLOSING, frame.reason)
        self.until = now + self.times.pending_ack_timeout

    def _drain(self) -> Steps:
        yield from self._confirm_owed(float("inf"))
        flows: list[Any] = [*self.outflows.values(), *self.inflows.values()]
        if not self.has_drained and all(flow.is_idle for flow in flows):
            self.has_drained = True
            yield Drained()
        if self.has_drained and self.peer_has_drained and self.closing is not None:
            raise Broken(self.closing)


def of_role(role: Role | None, link: str) -> frozenset[type[Frame]]:
    """Frames of who uses such a link."""
    if role is Role.REPLICA:
        return OF_REPLICATION
    if role is Role.WITNESS:
        return OF_VOTES
    if role is Role.CLUSTER:
        return OF_CLUSTERS
    if role is Role.PEERING and link == PAIR_LINK:
        return OF_PAIRS
    if is_of_network(role, link) or is_of_agent(role, link):
        return OF_NETWORKS
    return OF_SESSIONS if role in OF_PROGRAMS else frozenset()


INFLOWS_MAX = 10_000
NS: Final = 1_000_000_000
NEVER: Final = float("inf")
SHIP: Final = frozenset({Role.PEERING, Role.CLUSTER})
"""Links of these roles ship messages; programs, members and voters have words for what they do."""
BEFORE: Final = (State.CONNECTING, State.HANDSHAKING)
OPEN: Final = (State.SYNCING, State.UP)
ANSWERS: Final = frozenset({Opened, Unopened, Credit, Confirm, Reject})
STEPS: Final[dict[type[Frame], str]] = {
    Opened: "opened",
    Unopened: "unopened",
    Credit: "credit",
    Confirm: "confirm",
    Reject: "reject",
    Resume: "resume",
    Records: "records",
    Part: "parts",
    Passed: "passes",
}
"""What a flow does with a frame: a method of it."""
