"""Carries out what the machine of a member says, one action after the other, and tells it what
came of it.

All of it is of the network thread, but what is done by the worker: whatever waits for a disk.
While that works, the actions behind it wait; the machine hears what happens all the same.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from shmbroker.ipc.base.errors import DiskFull, Error
from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.election.candidate import Ask
from shmbroker.netbridge.election.voters import Voters
from shmbroker.netbridge.member.action import (
    Action,
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
from shmbroker.netbridge.member.codec import Here, packed, written
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.option import Replication
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import Diverged, Dropped, Hello, InSync, Join, Said
from shmbroker.netbridge.member.standing import (
    ENDING,
    FOLLOWING,
    Began,
    Record,
    State,
    Voted,
)
from shmbroker.netbridge.member.written import OwnFrames, position_of
from shmbroker.netbridge.replica.following import Carrier, Following
from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.replicated.aside import DIVERGED, Aside
from shmbroker.netbridge.replicated.backups import Backups
from shmbroker.netbridge.replicated.checking import Checking
from shmbroker.netbridge.replicated.deaths import Deaths
from shmbroker.netbridge.replicated.options import reloaded
from shmbroker.netbridge.replicated.process import Process, now
from shmbroker.netbridge.replicated.served import Served
from shmbroker.netbridge.replicated.store import Store, last_of, written_in
from shmbroker.netbridge.replicated.talks import Talks
from shmbroker.netbridge.replicated.turns import Turns
from shmbroker.netbridge.replicated.votes import Votes
from shmbroker.netbridge.replicated.waiting import Waiting
from shmbroker.netbridge.wire.frame import Frame

Log = Callable[[Mapping[str, Any]], None]
NEVER = math.inf
PROGRESS_SECONDS = 1.0
WORKERS = 4
"""As many as there are kinds of work: to count what was set aside takes seconds, a command of
`on-promote` as long as it likes, and no takeover may wait for that."""


class Acting(Carrier):
    def __init__(
        self,
        thread: NetworkThread,
        store: Store,
        warm: Warm,
        options: MemberOptions,
        process: Process,
        boot: str,
        tell: Log,
    ) -> None:
        """Call `begin` when the links are made."""
        self.thread, self.store, self.process = thread, store, process
        self._tell = tell
        self.talks: Talks
        self.uris: dict[str, str] = {}
        """Of members: how programs on other hosts reach them."""
        self.voters: Voters | None = None
        self.votes: Votes | None = None
        """Of a live of a cluster."""
        self.warm: Warm | None = warm
        self.following: Following | None = None
        self.served: Served | None = None
        past, self.written = store.past(warm)
        self._worker = Worker(thread.call, WORKERS)
        self._checking = Checking(self, store, self._worker, process.line)
        self.machine = Member(
            options, past, self._checking.has, boot=boot, life=os.urandom(8).hex(), now=now()
        )
        self.machine.fresh_node = os.urandom(16)
        self._aside = Aside(self, store, self._worker, process.line)
        self._waiting = Waiting(self._worker, self._carry_out, lambda: self.does([]), self.failed)
        self._turns = Turns()
        self._notes: deque[tuple[int, Record]] = deque()
        """Of the journal, by the count of each: not synced yet."""
        self._seen = b""
        """The standing that came last of the live."""
        self.frames = OwnFrames(options.name)
        self._backups = Backups(self)
        self._takes_all = self._holds = False
        self._refused: tuple[str, str] | None = None
        """By whom no link was made, and why: said when it wants to join, or to found a node."""
        self._deaths = Deaths(thread, self._member_died)
        self._shown_at = 0.0
        """How far a sync is."""
        self.due = NEVER

    def begin(self) -> None:
        """In the thread."""
        self.thread.members.append(self)
        self.does(self.machine.start(now()))
        self._aside.begin()

    @property
    def is_passive(self) -> bool:
        """Nothing of a time as live is left."""
        has_data = self.warm is not None or self.following is not None
        return has_data and self.served is None

    # --- of the thread ------------------------------------------------------------------------

    def woken(self, _: float) -> None:
        self.does(self.machine.tick(now()) if now() >= self.machine.deadline else [])

    def end(self) -> None:
        """The thread ends."""

    def does(self, actions: Iterable[Action]) -> None:
        self._waiting.add(actions)
        if self.served is not None and not self.machine.may_run_ahead:
            self.served.runs_ahead(False)  # before a list is written that does not say so
        if not self._waiting.go_on():
            return
        if self.machine.node != self.store.marks.node and self.machine.state not in ENDING:
            self._marks(partial(self.store.mark, node=self.machine.node))
        self._backups.let_go()
        self._say_how_it_serves()
        if self.votes is not None:
            self.votes.look()
        if self._refused is not None and self.machine.heeds_refusals:
            refused, self._refused = self._refused, None
            self.does(self.machine.refused(*refused))
            return
        deadline = self.machine.deadline
        self.due = NEVER if deadline == NEVER else time.monotonic() + deadline - now()
        self.process.changed()

    def _say_how_it_serves(self) -> None:
        """Programs in shared memory look at it themselves."""
        machine, at = self.machine, now()
        if self.served is not None and not self.served.is_over:
            self.served.runs_ahead(machine.may_run_ahead)
            self._backups.hold_confirms(self.served.followers, at)
            self.served.serves(machine.serves_until(at), disk_alone=machine.is_valid(at))

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Tell):
            self._say(action.member, action.what)
        elif isinstance(action, (TellVoter, Ask)):
            if self.voters is not None:
                what = action.what if isinstance(action, TellVoter) else action.question
                self.voters.ask(action.voter, what)
        elif isinstance(action, Line):
            self.process.line(action.alert.value, why=action.detail, epoch=self.machine.epoch)
        elif isinstance(action, End):
            self.process.ends(action.is_failure, action.detail)
        else:
            STEPS[type(action)](self, action)

    def _say(self, member: str, what: Said) -> None:
        """A place in its journal is that of the moment in which it is said."""
        if isinstance(what, (Hello, Join)):
            what = replace(what, last=self.machine.last)
        self.talks.say(member, what)

    # --- other members ------------------------------------------------------------------------

    def member_up(self, member: str, here: Here) -> None:
        self._refused = None
        self.uris[member] = here.uri
        self._deaths.watch(member, here)
        self._turns.take(member, lambda: self.does(self.machine.peer_up(member, now())))

    def member_is_at(self, member: str, uri: str) -> None:
        self.uris[member] = uri
        self.process.changed()

    def member_down(self, member: str) -> None:
        if self.served is not None:
            self.served.followers.stop(member)
        if self.following is not None and member == self.machine.live:
            self.following.lost()
        self._when_applied(member, lambda: self.does(self.machine.peer_down(member, now())))

    def _when_applied(self, member: str, step: Callable[[], None]) -> None:
        """What has come of it by then counts.  What it follows may have ended before its turn."""

        def wait(go_on: Callable[[], None]) -> None:
            def done() -> None:
                step()
                go_on()

            following = self.following if member == self.machine.live else None
            can_ask = self.voters is not None and not self._takes_all
            if following is None or (can_ask and following.has_told_all):
                done()  # voters need not wait until it is synced
            else:
                following.then(done)

        self._turns.wait(member, wait)

    def member_said(self, member: str, what: Said) -> None:
        heard = lambda: self.does(self.machine.heard(member, what, now()))  # noqa: E731
        if isinstance(what, Join) and what.is_whole and what.last.number and self.served:
            cut, look_for = self._backups.is_cut, self._checking.look_for
            self._turns.wait(
                member, lambda go_on: look_for(member, what, cut(member), heard, go_on)
            )
        elif isinstance(what, InSync):
            self._when_applied(member, heard)  # the list that it is on has come before
            self._aside.tell()
        elif isinstance(what, (Hello, Dropped)) and not what.serves:
            self._when_applied(member, heard)  # it may have said in its journal who is next
        elif isinstance(what, Diverged):
            self._aside.write(member, what)
        else:
            self._turns.take(member, heard)

    def member_sent(self, member: str, frame: Frame) -> None:
        if self.served is not None:
            self.served.followers.sent(member, frame)
        elif self.following is not None and member == self.machine.live:
            self.following.heard(frame)
            self._show_progress(time.monotonic())

    def _show_progress(self, at: float) -> None:
        if self.progress and at >= self._shown_at + PROGRESS_SECONDS:
            self._shown_at = at
            self.process.changed()

    @property
    def progress(self) -> str:
        return self.following.progress if self.following is not None else ""

    def member_refused(self, member: str, why: str) -> None:
        self._refused = member, why
        self.does([])

    def _member_died(self, member: str) -> None:
        self._when_applied(member, lambda: self.does(self.machine.died(member, now())))

    def reloaded(self, found: Replication) -> None:
        """The configuration was read again."""
        self.machine.options, self.store.terms = reloaded(
            self.machine.options, self.store.terms, found
        )
        if self.served is not None:
            self.served.followers.reloaded(self.store.terms)
        self.does([])

    def isolated(self, why: str) -> None:
        """`network-check`."""
        self.does(self.machine.isolated(why, now()))

    # --- becoming live ------------------------------------------------------------------------

    def _promote(self, _: Promote) -> None:
        machine, grant = self.machine, self.machine.granted
        epoch = grant.epoch if grant is not None else machine.epoch + 1
        node, old = machine.node, machine.last.holder

        def told(why: str | Exception | None) -> None:
            if isinstance(why, Exception):
                why = str(why)
            if why:
                self.process.line("on-promote refused", why=why)
            self.does(machine.promoted(not why, now()))

        self._worker.do(lambda: self.process.refusal(epoch, node, old), told, of="promote")

    def _begin(self, begin: Begin) -> None:
        record = Began(begin.epoch, self.machine.me, begin.copies, begin.is_forced)
        if self.served is not None:
            self.note(record)
            return
        former = self.written
        of_another = former.holder not in ("", self.machine.me)
        self.written = former.after(record)
        warm, self.warm = self.warm, None
        assert warm is not None
        standing = packed(self.written)
        has_others = any(copy.member != self.machine.me for copy in begin.copies)
        awaits = has_others or self.machine.is_withholding(now())

        def work() -> Served:
            self.store.copied(node=self.machine.node, left=None)
            has = self.store.emptied(warm, former, begin.epoch) if begin.empties else warm
            has.founds(self.machine.node)
            return Served(
                self.thread, self.store, has, begin.epoch, standing, self, self._backups,
                self._tell, visible=lambda: self.process.prepares(self.machine.node, begin.epoch),
                awaits_backups=awaits, of_another=of_another, is_closed=begin.is_closed,
            )  # fmt: skip

        def begun(served: Served) -> None:
            self.served = served
            if not self._waiting.has(StopServing):  # else somebody has a higher epoch by now
                self._notes = deque([(served.count, record)])
                self.journal_told()

        self._waiting.meanwhile(work, begun)

    def _drain(self, drain: Drain) -> None:
        machine, epoch = self.machine, drain.epoch

        def gave(is_whole: bool) -> None:
            if is_whole:
                self.store.mark(drained=epoch)
            self.thread.call(lambda: self.does(machine.gave(epoch, now(), is_whole=is_whole)))

        if self.served is not None:
            self.process.drains(self.served.broker, gave)

    # --- its journal --------------------------------------------------------------------------

    def _write(self, write: Write) -> None:
        if self.served is not None:
            self.note(write.record)

    def note(self, record: Record) -> None:
        """Confirms wait for a replica from before the record that says so."""
        assert self.served is not None
        self._backups.count(self.served.followers)
        self.written = self.written.after(record)
        count = self.served.journaler.standing(packed(self.written))
        self._notes.append((count, record))

    def journal_told(self) -> None:
        served, machine = self.served, self.machine
        if served is None:
            return
        told = served.journaler.told()
        while self._notes and self._notes[0][0] <= told.synced:
            _, record = self._notes.popleft()
            if isinstance(record, Began):
                closed = record.epoch if machine.is_closed else 0
                self._worker.do(partial(self.store.begun, closed), lambda _: None, of="begun")
                self.frames.begin(record.epoch, told.number)
                last = self.frames.position(told.number)
                self.does(machine.has_begun(last, now()))
            else:
                last = self.frames.position(told.number)
                self.does(machine.appended(last, record, now()))
                if isinstance(record, Voted) and self.votes is not None:
                    self.votes.written(record, last.number)
            self.does(machine.has_synced(last.number, now()))
        if told.holds:
            self.does(machine.held(self.frames.position(told.last), now()))
        self._backups.tell(served.followers)

    def journal_is(self, failure: Error | None) -> None:
        """In a thread of its own."""
        self.thread.call(lambda: self._journal_is(failure))

    def _journal_is(self, failure: Error | None) -> None:
        if self.served is None or self.served.is_over:
            return
        if failure is None:
            self.process.line("disk has room")
            self.does(self.machine.can_write(now()))
        elif isinstance(failure, DiskFull):
            self.process.line("disk full", why=str(failure))
            self.does(self.machine.cannot_write(now()))
        else:
            self.does(self.machine.fails(str(failure)))

    def _hold(self, action: Hold | GoOn) -> None:
        self._holds = isinstance(action, Hold)
        if self.served is not None:
            self.served.journaler.hold(self._holds)

    def _write_left(self, _: WriteLeft) -> None:
        age = self.written.age

        def marked(_: None) -> None:
            self.does(self.machine.left())

        self._waiting.meanwhile(lambda: self.store.mark(left=age), marked)

    # --- those that follow --------------------------------------------------------------------

    def lag(self, member: str) -> Mapping[str, object]:
        return self.served.followers.lag(member) if self.served is not None else {}

    # --- being live no more -------------------------------------------------------------------

    def _stop_serving(self, stop: StopServing) -> None:
        served, self.served = self.served, None
        if served is None:
            return
        is_graceful = self.machine.state is State.STOPPED and not self._holds
        is_graceful &= not served.followers.somebody_counts
        if not is_graceful:
            served.fence()
        ends = self.machine.state in ENDING
        self._holds = False
        self._backups.end()
        has_untold = bool(self._notes)
        self._notes.clear()
        uri = self.uris.get(stop.to, "")

        def work() -> None:
            self.process.stops_serving(at_once=not is_graceful, uri=uri)
            served.end()
            if ends:
                vhosts.retire(self.store.config.vhost)

        def ended(_: None) -> None:
            if not ends:
                has = partial(self._has, has_untold=has_untold)
                self._waiting.meanwhile(self.store.warm, has)
                self._tell_who_is_next(stop.to)

        self._waiting.meanwhile(work, ended)

    def _tell_who_is_next(self, member: str) -> None:
        """Nobody serves before that, and to read all again takes as long as the journal is."""

        def is_that(each: Action) -> bool:
            if not isinstance(each, Tell):
                return False
            return each.member == member and isinstance(each.what, Dropped)

        for each in self._waiting.takes(is_that):
            self._carry_out(each)

    def _has(self, warm: Warm, *, has_untold: bool = False) -> None:
        """What its journal says now.

        `has_untold`: it has records that were not synced, and that a replica may have: as that the
        node was handed over to it.
        """
        self.warm, former, self.written = warm, self.written, written_in(warm)
        self.machine.last = last_of(warm, self.written)
        if has_untold or self.written.age > former.age:
            self.does(self.machine.took(self.machine.last, self.written.records))
        self.machine.say_hello()
        self.does(self.machine.done())

    # --- following ----------------------------------------------------------------------------

    def _follow(self, follow: Follow) -> None:
        self._takes_all = follow.is_all
        self._seen = b""
        warm, self.warm = self.warm, None

        def work() -> Following:
            if follow.is_all:
                self.store.mark(is_whole=False, left=None)
            return Following(
                self.thread, self.store.path, self.machine.me, bytes(16), self.store.terms,
                warm or self.store.warm(), self.store.copied_anew, self, self._tell,
            )  # fmt: skip

        def begun(following: Following) -> None:
            self.following = following
            if not self._waiting.has(Unfollow):
                following.up(anew=follow.is_all)

        # the journal is not moved away while somebody counts what only it has
        self._waiting.meanwhile(work, begun, DIVERGED if follow.is_all else None)

    def _unfollow(self, _: Unfollow) -> None:
        following, self.following = self.following, None
        if following is None:
            return

        def work() -> Warm:
            return following.stop() or self.store.warm()

        self._waiting.may_ask = True
        self._waiting.meanwhile(work, self._has)

    def say(self, frame: Frame) -> None:
        self.talks.send(self.machine.live, frame)

    def break_off(self, why: str) -> None:
        """It joins again, and the link stays; what cannot be gone on with is copied anew."""
        if self.following is not None and self.following.places == (None, None):
            self.machine.is_whole = False
            if not self._marks(partial(self.store.mark, is_whole=False)):
                return
        self.does(self.machine.heard(self.machine.live, Dropped(why), now()))

    def failed(self, why: str) -> None:
        self.does(self.machine.fails(why))

    def _marks(self, mark: Callable[[], None]) -> bool:
        """In this thread, which no error of the disk may end: the member fails."""
        try:
            mark()
        except (Error, OSError) as error:
            self.failed(str(error))
            return False
        return True

    def discards(self) -> bool:
        if not self._takes_all:
            self.break_off("its journal does not go on behind ours")
        return self._takes_all

    def applied(self, place: Place, standing: bytes) -> None:
        machine, following = self.machine, self.following
        if machine.state not in FOLLOWING or following is None:
            return
        if standing and standing != self._seen:
            self._seen = standing
            found = written(standing)
            is_news, self.written = found.age > self.written.age or self._takes_all, found
            records = found.records if is_news else ()
            self.does(machine.took(position_of(place, found), records))
        machine.last = position_of(place, self.written)
        machine.epoch = machine.last.epoch
        copying = following.copying
        is_there = copying.counts_from and place.number >= copying.counts_from
        if self._takes_all and is_there:  # also if its link is lost by now
            self._takes_all = False
            if self._marks(partial(self.store.copied, left=None, is_written=True)):
                self._aside.count()
                self.does(machine.copied(machine.last))


STEPS: dict[type[Any], Callable[[Acting, Any], None]] = {
    Promote: Acting._promote,
    Begin: Acting._begin,
    Write: Acting._write,
    Hold: Acting._hold,
    GoOn: Acting._hold,
    WriteLeft: Acting._write_left,
    Ship: lambda acting, ship: acting._backups.ship(ship),
    StopShipping: lambda acting, stop: acting._backups.stop(stop.member),
    Follow: Acting._follow,
    Unfollow: Acting._unfollow,
    Serve: lambda acting, serve: acting.process.serves(acting.machine.node, serve.epoch),
    LookAround: lambda acting, _: acting.process.looks_around(),
    Drain: Acting._drain,
    StopServing: Acting._stop_serving,
}
