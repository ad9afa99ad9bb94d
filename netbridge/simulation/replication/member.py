"""A member as a process: carries out what its machine says, over a log, lines and clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from shmbroker.netbridge.election.candidate import Ask
from shmbroker.netbridge.election.question import Answer, Renewed, Stale
from shmbroker.netbridge.history.event import Answered, Queue
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.member.action import (
    Action,
    Alert,
    Begin,
    Drain,
    End,
    Follow,
    GoOn,
    Hold,
    Line,
    LookAround,
    Promote,
    Serve,
    Ship,
    StopServing,
    StopShipping,
    Tell,
    TellVoter,
    Unfollow,
    Write,
    WriteLeft,
)
from shmbroker.netbridge.member.draining import Phase
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import Hello, Join, Said
from shmbroker.netbridge.member.standing import SERVING, Began, Record
from shmbroker.netbridge.replicated.attempts import Attempts
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Message
from shmbroker.netbridge.simulation.replication.ends import NEVER, Ends
from shmbroker.netbridge.simulation.replication.log import (
    Frame,
    Log,
    Made,
    Moved,
    Op,
    Put,
    Taken,
    records,
)
from shmbroker.netbridge.simulation.replication.process import Process
from shmbroker.netbridge.simulation.replication.rings import Rings
from shmbroker.netbridge.simulation.replication.voter import NODE
from shmbroker.netbridge.simulation.replication.watch import Watch
from shmbroker.netbridge.simulation.world import Wrong
from shmbroker.netbridge.wire.words import Level

COPY_SECONDS = 0.02, 0.3
PROMOTE_SECONDS = 0.001, 0.1
DRAIN_SECONDS = 0.001, 0.1
TOGETHER = 8
"""So many messages at most are given away at once."""
CHECKS = LinkTimes(heartbeat_interval=0.2)
GATEWAY = "gateway"
"""What `network-check` looks for: it is up always, and who is isolated does not reach it."""
LOST_TARGETS = 3
"""In one of so many turns nobody takes them."""


@dataclass(frozen=True, slots=True)
class Frames:
    frames: tuple[Frame, ...]
    stream: int
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class Has:
    number: int
    stream: int


@dataclass(slots=True)
class Pending:
    """An answer that waits for its level."""

    number: int
    level: Level | None
    tell: Callable[[Answered], None]


class MemberProcess(Process):
    def __init__(
        self,
        host: Host,
        log: Log,
        options: MemberOptions,
        boot: str,
        watch: Watch,
        ended: Callable[[bool], None],
        set_aside: Callable[[list[Frame]], None],
        gives: Callable[[Queue, str], None],
    ) -> None:
        """`gives`: a message to another node."""
        super().__init__(host, log.disk)
        self.set_aside, self.gives = set_aside, gives
        self.log = log
        self.watch = watch
        self.ended = ended
        self.acks_when_synced = options.ack_outlives_boot
        self.timeout = options.replica_timeout
        past = log.past(host.name, NODE if log.frames else log.marks.node)
        self.machine = Member(
            options, past, log.has, boot=boot, life=f"{host.name} {host.life}", now=host.clock
        )
        self.machine.fresh_node = NODE
        self.attempts = Attempts([GATEWAY], CHECKS)
        self.rings: Rings | None = None
        self.ends: Ends | None = None
        """As long as it writes its journal, and nobody else may."""
        self.notes: deque[tuple[int, Record]] = deque()
        """Records of its journal that are not synced: the machine is told of nothing else."""
        self.shipped: dict[str, int] = {}
        """By replica: up to which frame it was sent."""
        self.joins: dict[str, int] = {}
        """Where the journals of those end that asked to follow."""
        self.follows = ""
        self.stream = 0
        self.streams: dict[str, int] = {}
        """By replica."""
        self.watched: dict[str, int] = {}
        """By member: the life of its newest process that was met."""
        self.takes_all = False
        self.pending: list[Pending] = []
        self.was_broken = False
        self.staged: list[Action] = []
        """Records that a full disk does not take: nobody else sees them before it does."""
        self.waiting: deque[Action] = deque()
        self.is_busy = False
        self.is_holding = False

    def begin(self) -> None:
        super().begin()
        self.does(self.machine.start(self.host.clock))
        if self.log.synced < len(self.log.frames):
            self._sync()

    # --- what happens -------------------------------------------------------------------------

    def connected(self, other: str) -> None:
        clock = self.host.clock
        voter = other.startswith("v")
        line = self.lines[other]
        if line.connection is not None:
            self.watched[other] = line.connection.lives[1 - line.side]
        up = self.machine.voter_up if voter else self.machine.peer_up
        self.does(up(other, clock))

    def died(self, other: str, life: int) -> None:
        """That process of it, if no newer one was met."""
        if self.watched.get(other) == life:
            self.does(self.machine.died(other, self.host.clock))

    def disconnected(self, other: str, *, is_closed: bool) -> None:
        if other.startswith("v"):
            self.does(self.machine.voter_down(other))
        else:
            self.does(self.machine.peer_down(other, self.host.clock))

    def heard(self, other: str, message: Message) -> None:
        clock = self.host.clock
        if isinstance(message, (Answer, Renewed, Stale)):
            self.does(self.machine.voter_said(other, message, clock))
        elif isinstance(message, Frames):
            self._took(other, message)
        elif isinstance(message, Has):
            self._replica_has(other, message)
        else:
            if isinstance(message, Join):
                self.joins[other] = message.last.number
            self.does(self.machine.heard(other, message, clock))

    def tick(self) -> None:
        clock = self.host.clock
        for late in [] if self.ends is None else self.ends.late(self.timeout, clock):
            self._stop_shipping(late)
            self.does(self.machine.replica_failed(late, "no progress", clock))
        if clock >= self.machine.deadline:
            self.does(self.machine.tick(clock))
        else:
            self._wake()

    def _wake(self) -> None:
        late = self.ends.deadline(self.timeout) if self.ends is not None else NEVER
        self.wake(min(self.machine.deadline, late))

    def looked(self, began: float, *, is_there: bool) -> None:
        """An attempt to reach the gateway has ended."""
        told = self.attempts.ended(0, began, is_there=is_there)
        if told is not None:
            self.does(self.machine.isolated(told, self.host.clock))

    # --- what it does -------------------------------------------------------------------------

    def does(self, actions: Iterable[Action]) -> None:
        """One after the other, and what comes of them."""
        self.waiting.extend(actions)
        if self.is_busy:
            return
        self.is_busy = True
        while self.waiting:
            action = self.waiting.popleft()
            if isinstance(action, Tell):
                self._tell(action.member, action.what)
            elif isinstance(action, TellVoter):
                self.say(action.voter, action.what)
            elif isinstance(action, Ask):
                self.say(action.voter, action.question)
            else:
                self._do(action)
        self.is_busy = False
        machine = self.machine
        if self.ends is not None and machine.state in SERVING and machine.granted is None:
            self.ends.let_go(machine.counted)
        if self.machine.node != self.log.marks.node:
            self.log.mark(node=self.machine.node)
        self._confirm()
        self._wake()

    def _tell(self, member: str, what: Said) -> None:
        """A place in its journal is that of the moment in which it is said."""
        if isinstance(what, (Hello, Join)):
            what = replace(what, last=self.machine.last)
        self.say(member, what)

    def _do(self, action: Action) -> None:
        world = self.host.world
        if isinstance(action, (Begin, Write)) and self.disk.is_full:
            self.staged.append(action)
            self._sync()
        elif isinstance(action, Begin):
            self._begin(action)
        elif isinstance(action, Write):
            self._append((), action.record)
        elif isinstance(action, Hold):
            self.is_holding = True
            self._held()
        elif isinstance(action, GoOn):
            self.is_holding = False
        elif isinstance(action, WriteLeft):
            self.log.mark(self._on_host(self._left), left=self.log.last.age)
        elif isinstance(action, Promote):
            self.host.later(world.between(*PROMOTE_SECONDS), self._promoted)
        elif isinstance(action, Ship):
            self._ship(action)
        elif isinstance(action, StopShipping):
            self._stop_shipping(action.member)
        elif isinstance(action, Follow):
            self.follows, self.takes_all = action.member, action.is_all
            self.stream = action.stream
            if action.is_all:
                self.log.mark(is_whole=False)
            else:
                self._sync()
        elif isinstance(action, Unfollow):
            self.follows = ""
        elif isinstance(action, Serve):
            self.watch.serves(self.name, self.log, self.machine.began_at)
            self.rings = Rings(self.log.frames)
            self.watch.takeovers += 1
        elif isinstance(action, Drain):
            self.watch.serves(self.name, self.log, self.machine.began_at)
            self.host.later(world.between(*DRAIN_SECONDS), partial(self._gives, action.epoch))
        elif isinstance(action, StopServing):
            # programs have the rings in their memory still, and wait for confirms
            self.ends = None
            self.staged.clear()
            untold = tuple(record for _, record in self.notes)
            self.notes.clear()
            self.machine.last = self.log.last
            if untold:  # they were not synced; a replica may have them
                self.does(self.machine.took(self.log.last, untold))
            self.machine.say_hello()
            self.does(self.machine.done())
        elif isinstance(action, LookAround):
            self.attempts.again(self.host.clock)
        elif isinstance(action, End):
            world.tell(f"{self.name}: ends {action.detail}")
            world.at(world.now, lambda: self.ended(action.is_failure))
        elif isinstance(action, Line):
            world.tell(f"{self.name}: {action.alert.value} {action.detail}")
            self.watch.synced += action.alert is Alert.IN_SYNC
            self.watch.handovers += action.alert is Alert.HANDED_OVER

    def _on_host(self, step: Callable[[], None]) -> Callable[[], None]:
        return lambda: self.soon(step)

    def _promoted(self) -> None:
        self.does(self.machine.promoted(True, self.host.clock))

    def _left(self) -> None:
        self.does(self.machine.left())

    # --- its journal --------------------------------------------------------------------------

    def _begin(self, begin: Begin) -> None:
        if begin.empties and self.ends is None:
            standing = self.log.last, self.machine.copies
            if self.log.marks.standing is not None and not self.log.frames:
                standing = self.log.marks.standing
            begins = self._on_host(partial(self._begins_empty, begin))
            self.log.mark(begins, standing=standing, closed=begin.epoch)
        else:
            self._begins(begin)

    def _begins_empty(self, begin: Begin) -> None:
        granted = self.machine.granted
        if granted is not None and granted.epoch == begin.epoch and self.ends is None:
            self.watch.empties(self.log)
            self.log.emptied()
            self._begins(begin)

    def _begins(self, begin: Begin) -> None:
        self.watch.may_split |= begin.is_forced  # a person has decided
        self.watch.begins(self.name, begin.epoch, self.log)
        record = Began(begin.epoch, self.name, begin.copies, begin.is_forced)
        if self.ends is None:  # it serves other rings than it did before
            self.ends, self.rings, self.pending = Ends(), None, []
        self._note(record, begin.epoch)
        self._send_on()
        self._sync()

    def _note(self, record: Record, epoch: int) -> Frame:
        """Confirms wait for a replica from before the record that says so."""
        assert self.ends is not None
        self.ends.count(self.machine.counted)
        frame = self.log.append(epoch, self.name, (), record)
        self.notes.append((frame.number, record))
        return frame

    def _append(self, ops: tuple[Op, ...], record: Record | None = None) -> Frame:
        epoch = self.log.last.epoch
        if self.follows or (record is None and self.log.last.holder != self.name):
            raise Wrong(f"{self.name} writes in epoch {epoch}, and follows {self.follows}")
        if record is not None:
            frame = self._note(record, epoch)
        else:
            frame = self.log.append(epoch, self.name, ops)
        if self.rings is not None:
            self.rings.apply(frame)
        self._send_on()
        self._sync()
        return frame

    def _sync(self) -> None:
        if self.disk.fails:
            if not self.was_broken:
                self.was_broken = True
                self.host.at(self.disk.fails_until, self._works_again)
                clock = self.host.clock
                self.soon(lambda: self.does(self.machine.cannot_write(clock)))
            return
        self.log.sync(lambda end: self.soon(lambda: self._synced(end)))

    def _works_again(self) -> None:
        self.was_broken = False
        staged, self.staged = self.staged, []
        self.does(staged)  # what is written now stands behind it
        self.does(self.machine.can_write(self.host.clock))
        self._sync()

    def _held(self) -> None:
        """Once all is synced that was written."""
        is_stuck = self.was_broken and self.disk.is_full
        if self.is_holding and not is_stuck and self.log.synced >= len(self.log.frames):
            self.is_holding = False
            self.does(self.machine.held(self.log.last, self.host.clock))

    def _synced(self, end: int) -> None:
        self._tell_of_records()
        self._held()
        if self.follows and self.acks_when_synced and self.machine.is_whole:
            self.say(self.follows, Has(min(end, self.log.synced), self.stream))

    def _tell_of_records(self) -> None:
        machine, clock = self.machine, self.host.clock
        while self.notes and self.notes[0][0] <= self.log.synced:
            number, record = self.notes.popleft()
            last = self.log.frames[number - 1].position
            if isinstance(record, Began):
                marks = self.log.marks
                closed = record.epoch if machine.is_closed else marks.closed
                if (marks.standing, marks.closed) != (None, closed):
                    self.log.mark(standing=None, closed=closed)
                self.does(machine.has_begun(last, clock))
            else:
                self.does(machine.appended(last, record, clock))
            self.does(machine.has_synced(number, clock))
        self._confirm()

    # --- giving all away ----------------------------------------------------------------------

    def _gives(self, epoch: int) -> None:
        """Some of it goes to another node, which has it for good before it is gone here."""
        machine, world = self.machine, self.host.world
        if machine.phase is not Phase.DRAINING or machine.epoch != epoch:
            return
        again = partial(self._gives, epoch)
        if not machine.may_write() or self.disk.fails:
            self.host.later(world.between(*DRAIN_SECONDS), again)
            return
        rings = Rings(self.log.frames)
        here = [(queue, name) for queue, names in rings.queues.items() for name in names]
        if world.random.randrange(LOST_TARGETS) == 0:
            self.does(machine.gave(epoch, self.host.clock, is_whole=False))
        elif here or rings.outgoing:
            self._sends(rings)
            some = here[: world.random.randrange(1, TOGETHER)]
            if some:
                self._append(tuple(Moved(queue, name) for queue, name in some))
            self.host.later(world.between(*DRAIN_SECONDS), again)
        else:
            self.log.mark(self._on_host(partial(self._gave, epoch)), drained=epoch)

    def _sends(self, rings: Rings) -> None:
        end = self.confirmed(None)
        sent = [each for each, number in rings.outgoing.items() if number <= end]
        for queue, name in sent:
            self.gives(queue, name)
        if sent:
            self._append(tuple(Taken(queue, name) for queue, name in sent))

    def _gave(self, epoch: int) -> None:
        self.does(self.machine.gave(epoch, self.host.clock, is_whole=True))

    # --- a replica, at both ends --------------------------------------------------------------

    def _ship(self, ship: Ship) -> None:
        member = ship.member
        self.shipped[member], self.streams[member] = self.joins[member], ship.stream
        if ship.is_all:
            self.shipped[member] = len(self.log.frames)
            frames = tuple(self.log.frames)
            self.say(member, Frames(frames, ship.stream, is_all=True))
        if self.ends is not None:
            # what a replica had in memory counts when it says that it is synced
            has = 0 if ship.is_all or self.acks_when_synced else self.joins[member]
            self.ends.ship(member, ship.stream, has, self.host.clock)
            self._replica_has(member, Has(has, ship.stream))
        self._send_on()

    def _stop_shipping(self, member: str) -> None:
        self.shipped.pop(member, None)
        if self.ends is not None:
            self.ends.stop(member)

    def _replica_has(self, member: str, said: Has) -> None:
        machine, clock = self.machine, self.host.clock
        number, last = said.number, len(self.log.frames)
        if self.ends is not None and self.ends.has(member, said.stream, number, last, clock):
            self.ends.count([member] if member in machine.counted else [])
            self.does(machine.replica_can_count(member, said.stream, clock))
        is_awaited = machine.awaits(member)
        actions = machine.replica_has(member, said.stream, number, clock)
        assert is_awaited or not actions, "a live that is told of each frame would miss them"
        self.does(actions)

    def _send_on(self) -> None:
        for member, number in self.shipped.items():
            frames = tuple(self.log.frames[number:])
            if frames:
                self.shipped[member] = len(self.log.frames)
                self.say(member, Frames(frames, self.streams[member]))
                if self.ends is not None:
                    self.ends.sent(member, len(self.log.frames), self.host.clock)

    def _took(self, other: str, message: Frames) -> None:
        if (other, message.stream) != (self.follows, self.stream):
            return
        if message.is_all:
            self._took_all(message.frames)
            return
        if self.takes_all:
            raise Wrong(f"{self.name} gets a tail, and waits for everything")
        for frame in message.frames:
            if not self.log.fits(frame):
                raise Wrong(f"{self.name} gets frame {frame.number}, which does not fit")
            self.log.frames.append(frame)
        self.does(self.machine.took(self.log.last, records(message.frames)))
        self._sync()
        if not self.acks_when_synced and self.machine.is_whole:
            self.say(other, Has(len(self.log.frames), self.stream))

    def _took_all(self, frames: tuple[Frame, ...]) -> None:
        self.set_aside(not_in(frames, self.log.frames))
        self.takes_all = False
        self.log.replaced(frames, self._on_host(lambda: self._whole(frames)))
        self.does(self.machine.took(self.log.last, records(frames)))

    def _whole(self, frames: tuple[Frame, ...]) -> None:
        if not self.follows:
            return
        self.does(self.machine.copied(self.log.last))
        self.say(self.follows, Has(len(self.log.frames), self.stream))

    # --- clients ------------------------------------------------------------------------------

    @property
    def serves(self) -> bool:
        return self.host.is_up and self.machine.state in SERVING

    def write(
        self, ops: tuple[Op, ...], level: Level | None, tell: Callable[[Answered], None]
    ) -> bool:
        """False: it is not for this member."""
        rings = self.rings
        if rings is None or not self.machine.may_write() or self.machine.lacks_copies:
            return False
        if self.disk.is_full:
            self._sync()
            return False
        if level is Level.REPLICATED:
            self.does(self.machine.wants_replicated(self.host.clock))
        known = [rings.seen(op) for op in ops if isinstance(op, Put)]
        known += [
            len(self.log.frames)
            for op in ops
            if rings.made.get(op.queue.name) == op.queue and isinstance(op, Made)
        ]
        if known and all(known):
            self.pending.append(Pending(max(known), level, tell))
        elif all(rings.has(op) for op in ops if isinstance(op, Taken)):
            if any(op.queue not in rings.queues for op in ops if isinstance(op, Put)):
                return False
            frame = self._append(ops)
            self.pending.append(Pending(frame.number, level, tell))
        self._confirm()
        return True

    def confirmed(self, level: Level | None) -> int:
        """Frames up to this number are confirmed: by the journal, not by the machine."""
        machine, clock, ends = self.machine, self.host.clock, self.ends
        is_held = ends is not None and ends.holds(machine.counted)
        if ends is None or not is_held or machine.is_withholding(clock):
            return 0
        synced, replicated = self.log.synced, ends.replicated
        if replicated is None:
            return 0 if level in (Level.REPLICATED, Level.DISK_AND_REPLICATED) else synced
        if level is Level.REPLICATED and machine.may_run_ahead:
            return replicated
        if level is Level.DISK and clock < machine.serves_until(clock) and machine.is_valid(clock):
            return synced
        return min(synced, replicated)

    def _confirm(self) -> None:
        """Whoever waits for what may be confirmed now."""
        machine = self.machine
        left = []
        for each in self.pending:
            if self.confirmed(each.level) < each.number:
                left.append(each)
                continue
            one = each.level is Level.DISK and bool(machine.counted)
            level = each.level or machine.effective_level
            if each.number > len(self.log.frames):
                continue  # it was set aside since
            frame = self.log.frames[each.number - 1]
            self.watch.confirms(self.name, machine.epoch, frame, is_lasting=not one)
            each.tell(Answered(self.name, machine.epoch, level))
        self.pending = left

    def deliver(self, name: str) -> tuple[Put | None, bool]:
        """A message of this queue, and whether it may have been delivered before."""
        rings, clock = self.rings, self.host.clock
        if rings is None or self.machine.serves_until(clock) <= clock:
            return None, False
        found = rings.next(name, self.confirmed(None))
        if found is None:
            return None, False
        queue, message = found
        is_doubtful = self.machine.is_doubtful(clock)
        if not is_doubtful:
            self.watch.delivers(self.name, self.machine.epoch)
        was, message.was_delivered, message.is_in_hand = message.was_delivered, True, True
        return Put(queue, message.name, "", 0), was or is_doubtful


def not_in(history: Sequence[Frame], frames: Sequence[Frame]) -> list[Frame]:
    """Those of these frames that the history does not have."""
    return [
        frame
        for frame in frames
        if frame.number > len(history) or history[frame.number - 1].chain != frame.chain
    ]
