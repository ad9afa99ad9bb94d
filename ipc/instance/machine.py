"""The state machine of an instance: events in, actions out, no effects.

    STARTING     --it is live, and nobody else is-->  RESTORING
    STARTING     --else-->                            PASSIVE
    PASSIVE      --the live lock is ours-->           PROMOTING, RESTORING, or PASSIVE as before
    PROMOTING    --the command says yes-->            RESTORING      (no: PASSIVE)
    RESTORING    --the rings are there-->             LIVE
    LIVE         --stopped, or failback-->            HANDING_OVER
    HANDING_OVER --all is written-->                  STOPPED, or PASSIVE after a failback
    LIVE         --its lease has run out-->           HANDING_OVER, and then PASSIVE
    PROMOTING    --its lease has run out-->           PASSIVE
    LIVE         --a backup that drains-->            HANDING_OVER, and then PASSIVE
    any          --it cannot go on-->                 FAILED

A passive instance first waits to be announced, one at a time.  Who is announced waits for the live
lock, except a backup whose live was stopped in good order, or never was: that one rests until the
record says that somebody is live again.  So nobody takes the lock only to let it go, over and over.

What has been decided about an epoch is kept: a backup whose command said no waits for nothing until
there is a later one, so that another backup is announced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from shmbroker.ipc.instance.lock.record import Record


class State(Enum):
    STARTING = "starting"
    PASSIVE = "passive"
    PROMOTING = "promoting"
    RESTORING = "restoring"
    LIVE = "live"
    HANDING_OVER = "handing over"
    STOPPED = "stopped"
    FAILED = "failed"


class Action(Enum):
    TRY_LIVE = "take the live lock if it is free"
    WAIT_ANNOUNCED = "wait to be announced"
    WAIT_LIVE = "wait for the live lock"
    RELEASE_ANNOUNCED = "let the next one be announced"
    RELEASE_LIVE = "let go of the live lock"
    PREPARE = "get ready, so that taking over is quick"
    ASK_FAILBACK = "ask for the role back"
    ASK_COMMAND = "run the command that may say no"
    GO_LIVE = "take over the rings and the journal"
    HAND_OVER = "write what is there, and let go"
    SAY_STOPPED = "write into the record that nobody shall take over"
    SAY_HANDED_OVER = "write into the record that the next one shall"
    END = "end the process"


Actions = Iterator[Action]


@dataclass(frozen=True, slots=True)
class Options:
    role: str = "live"
    failover_on_shutdown: bool = False
    allow_failback: bool = True
    restart_backup: bool = True
    has_command: bool = False


class Machine:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.is_original = options.role == "live"
        self.state = State.STARTING
        self.is_announced = False
        self.is_waiting = False
        """For the live lock."""
        self.is_stopping = False
        self.is_failing_back = False
        self.is_draining = False
        """A backup that has taken over, and gives all that is here to another node."""
        self.is_lost = False
        """Being live was, before it was given back."""
        self.asked_epoch = -1
        self.refused_epoch = -1
        """The command said no to replacing the live of this one."""
        self.sits_out = False
        """Until there is a later one: another backup is to be announced."""

    # --- becoming live ------------------------------------------------------------------------

    def start(self) -> Actions:
        if self.is_original:
            yield Action.TRY_LIVE
        else:
            yield from self._queue_up()

    def tried(self, got: bool, record: Record) -> Actions:
        """The original has tried to be live at once."""
        if got:
            self.state = State.RESTORING
            yield Action.GO_LIVE
        elif record.calls_for_backup:
            yield from self._queue_up()
        else:  # a backup is just looking whether it is wanted: it is not
            self.state = State.PASSIVE
            yield from self._wait_live()

    def _queue_up(self) -> Actions:
        self.state = State.PASSIVE
        yield Action.WAIT_ANNOUNCED

    def announced(self, record: Record) -> Actions:
        self.is_announced = True
        yield Action.PREPARE
        yield from self.recorded(record)

    def recorded(self, record: Record) -> Actions:
        """This is what the record says now."""
        if self.state != State.PASSIVE:
            return
        if self.sits_out and record.epoch > self.refused_epoch:
            self.sits_out = False
            yield from self._queue_up()
        if not self.is_announced:
            return
        if self._asks_back(record):
            self.asked_epoch = record.epoch
            yield Action.ASK_FAILBACK
        if not self.is_waiting and self._wants(record):
            yield from self._wait_live()

    def _asks_back(self, record: Record) -> bool:
        """For the role, of the one who is live; once, while it is announced."""
        asks = self.is_original and self.options.allow_failback
        return asks and record.calls_for_backup and record.epoch > self.asked_epoch

    def _wants(self, record: Record) -> bool:
        """To be live once the lock is free."""
        return self.is_original or (record.calls_for_backup and record.epoch > self.refused_epoch)

    def _wait_live(self) -> Actions:
        self.is_waiting = True
        yield Action.WAIT_LIVE

    def locked(self, record: Record) -> Actions:
        """The live lock is ours."""
        self.is_waiting = False
        if not self._wants(record):
            yield Action.RELEASE_LIVE
        elif self.options.has_command and not self.is_original:
            self.state = State.PROMOTING
            yield Action.ASK_COMMAND
        else:
            self.state = State.RESTORING
            yield Action.GO_LIVE

    def answered(self, yes: bool, record: Record) -> Actions:
        """The command that may say no has ended."""
        if yes:
            self.state = State.RESTORING
            yield Action.GO_LIVE
            return
        self.refused_epoch = record.epoch
        self.state = State.PASSIVE
        self.sits_out = True
        self.is_announced = False
        yield Action.RELEASE_LIVE
        yield Action.RELEASE_ANNOUNCED

    def went_live(self, *, drains: bool = False) -> Actions:
        """`drains`: a backup gives all that is here to another node, and waits again."""
        self.state = State.LIVE
        self.is_draining = drains and not self.is_original
        if self.is_announced:
            self.is_announced = False
            yield Action.RELEASE_ANNOUNCED
        if self.is_stopping or self.is_draining:
            yield from self._hand_over()

    # --- being live no more -------------------------------------------------------------------

    def failback_asked(self) -> Actions:
        """The original is ready to be live again."""
        gives = self.options.allow_failback and not self.is_original
        if self.state == State.LIVE and gives:
            self.is_failing_back = True
            yield from self._hand_over()

    def stop(self) -> Actions:
        """In good order; once more: at once."""
        is_busy = self.state in (State.RESTORING, State.HANDING_OVER)
        at_once = is_busy and self.is_stopping
        self.is_stopping = True
        if self.state == State.LIVE:
            yield from self._hand_over()
        elif at_once:
            yield self._last_word()
            yield from self._end(State.STOPPED)
        elif not is_busy:
            yield from self._end(State.STOPPED)

    def _hand_over(self) -> Actions:
        self.state = State.HANDING_OVER
        yield Action.HAND_OVER

    @property
    def is_for_another(self) -> bool:
        """Who hands over does it so that the next one takes over."""
        wants_another = self.options.failover_on_shutdown and not self.is_draining
        return self.is_failing_back or wants_another

    def _last_word(self, *, is_drained: bool = True) -> Action:
        is_said = self.is_for_another or not is_drained
        return Action.SAY_HANDED_OVER if is_said else Action.SAY_STOPPED

    def lost(self) -> Actions:
        """The lease on being live has run out: nothing is written and confirmed any more."""
        if self.state == State.PROMOTING:
            self.is_announced = False
            yield Action.RELEASE_LIVE
            yield Action.RELEASE_ANNOUNCED
            yield from self._queue_up()
        is_news = self.state in (State.RESTORING, State.LIVE)
        self.is_lost |= is_news or self.state == State.HANDING_OVER
        if is_news:
            yield from self._hand_over()

    def unannounced(self) -> Actions:
        """The lease on being announced has run out."""
        was_announced, self.is_announced = self.is_announced, False
        if was_announced and self.state == State.PASSIVE:
            self.asked_epoch = -1  # whoever asks has to be announced as long as it takes
            yield from self._queue_up()

    def handed_over(self, *, is_drained: bool = True) -> Actions:
        """All is written, or may not be, and nothing is confirmed any more.

        `is_drained`: of one that drains, nothing is here any more.
        """
        if not self.is_lost:
            yield self._last_word(is_drained=is_drained)
        yield Action.RELEASE_LIVE
        is_given_back = self.is_failing_back and self.options.restart_backup
        if (self.is_lost or is_given_back or self.is_draining) and not self.is_stopping:
            self.is_failing_back = self.is_lost = self.is_draining = False
            yield from self._queue_up()
        else:
            yield from self._end(State.STOPPED)

    def fail(self) -> Actions:
        """Like a crash: a backup takes over."""
        yield from self._end(State.FAILED)

    def _end(self, state: State) -> Actions:
        self.state = state
        yield Action.END
