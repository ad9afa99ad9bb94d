"""The loop of an instance: one thread decides, others leave word in its inbox.

What a full disk keeps from being done is done when there is room; what fails ends the instance.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from shmbroker.ipc.base.errors import (
    Error,
    InUse,
    InvalidArgument,
    SystemRefused,
)
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.base.thread import start
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.broker.restoring import Progress
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance import (
    full_disk,
    listed,
    mending,
    notify,
    ordering,
    process,
    reloading,
    rings,
    signals,
)
from shmbroker.ipc.instance.beat import Beat
from shmbroker.ipc.instance.config.config import FILE, Config, ConfigError
from shmbroker.ipc.instance.leaving import Left
from shmbroker.ipc.instance.lock import lock_test, record
from shmbroker.ipc.instance.lock.file_lock import FileLock
from shmbroker.ipc.instance.lock.live_lock import LiveLock
from shmbroker.ipc.instance.lock.record import Record
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.machine import Action, Machine, Options, State
from shmbroker.ipc.instance.mount import warnings
from shmbroker.ipc.instance.spooling import Spooling
from shmbroker.ipc.instance.stall import StallWatch
from shmbroker.ipc.instance.status import RUN, Sign, Status
from shmbroker.ipc.instance.store import FILE_LOCK, Store, StoreRefused
from shmbroker.ipc.paging.pager import Pager

Answer = TypeVar("Answer")

POLICIES: Final = ("shared-store", "live-only", "pair")
"""A broker of a pair has a store of its own, and its network knows the other one:
netbridge/paired/.  Of a replicated node: netbridge/replicated/."""
LAST_STATES: Final = (State.STOPPED, State.FAILED)


def lock_of(config: Config, store: Store, *, moved: bool = False) -> LiveLock:
    if config.lock == FILE_LOCK:
        lock_test.check(store.path)
        return FileLock(store.path)
    from shmbroker.ipc.instance.lock.sql_lock import SqlLock

    return SqlLock(config, store, moved=moved)


class Loop:
    """Its parts, the inbox of its one deciding thread, and what waits for room on a disk."""

    def __init__(self, config: Config, *, moved: bool = False, progress: Progress | None = None):
        self.config = config
        self.progress = progress
        self.ours = config.folder / RUN / "rings"
        """Says which rings on this host we were live with."""
        self.log = Log(config.log, config.name)
        self.machine = Machine(
            Options(
                config.role,
                config.failover_on_shutdown,
                config.allow_failback,
                config.restart_backup,
                bool(config.on_promote),
            )
        )
        self.shown: Status | None = None
        self.process = process.this()
        self.reload: Callable[[Config], reloading.Reloaded] | None = None
        """Reads the configuration again."""
        self.network: ordering.Networked | None = None
        """Where it listens, and what it ships while it is live."""
        self.orders = ordering.Orders(config.folder, self.log)
        self.reloads = ordering.Answers(config.folder / RUN / reloading.ANSWER)
        self.told_epoch = -1
        """Of the live of which the network was told."""
        self.why = ""
        self.epoch = 0
        self.promotions = 0
        """How often `on-promote` was begun."""
        self.is_ready = False
        self.stops = 0
        """Signals to stop: counted where they come, as the deciding thread may be restoring."""
        self.inbox: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self.broker: Broker | None = None
        self.journaler: Journaler | None = None
        self.attached: rings.Attached | None = None
        """While we are next: to the rings of who is live."""
        self.pager: Pager | None = None
        self.followers: list[threading.Thread] = []
        self.spooling: Spooling | None = None
        self.beat: Beat | None = None
        self.left: Left | None = None
        """What came of giving away all that is here, once that was tried."""
        self.attempt = 0
        self.full: dict[str, str] = {}
        """What waits for room on a disk, and why."""
        self.unwritten: dict[Path, Callable[[], None]] = {}
        """Small files of ours that could not be written yet, and what writes the newest of each."""
        self.stall: StallWatch | None = None
        self.sign = self._first(lambda: Sign(config.folder))
        try:
            self._first(self._check_policy, self.sign)
            self.store = self._first(lambda: Store.of(config, moved=moved), self.sign)
            self._first(self._mend, self.sign)
            self.lock = self._first(lambda: lock_of(config, self.store, moved=moved), self.sign)
        except Error:
            self.sign.close()
            raise
        for warning in warnings(self.store.mount):
            self.log.write("warning", why=warning)

    def _first(self, step: Callable[[], Answer], sign: Sign | None = None) -> Answer:
        """Of what comes before the loop: why it fails is in the log and the status, and
        told to the caller."""
        try:
            return self._with_room(step, sign)
        except InUse:  # the log is that of the one who runs: it has not failed
            raise
        except (Error, OSError) as error:
            why = told(error)
            with suppress(OSError):
                self.log.write("failed", why=why)
            if sign is not None:
                sign.failed(why)
            if isinstance(error, Error):
                raise
            raise SystemRefused(why) from error

    def _with_room(self, step: Callable[[], Answer], sign: Sign | None) -> Answer:
        """As soon as there is room on the disk, if that is what it lacks."""
        waits = False
        while True:
            try:
                answer = step()
            except (Error, OSError) as error:
                if not full_disk.is_full(error):
                    raise
                if not waits:
                    self._say_full(told(error), sign)
                waits = True
                time.sleep(full_disk.RETRY_SECONDS)
                continue
            if waits:
                self.log.write("disk has room")
            return answer

    def _check_policy(self) -> None:
        if self.config.policy not in POLICIES:
            raise ConfigError(
                f'{self.config.folder / FILE}: ha.policy = "{self.config.policy}" is known, and '
                f"this version runs {', '.join(POLICIES)} and replication only"
            )

    def _mend(self) -> None:
        """live.lock, if it does not say who is live, and nobody is."""
        done = mending.mend(self.store, self.config.lock, self.config.vhost, self.ours)
        if done is not None:
            self._say_mended(*done)

    def _say_mended(self, record: Record, damage: str) -> None:
        self.log.write("live.lock was made anew", why=damage, epoch=record.epoch)

    def _guarded(self, event: Callable[[], object]) -> None:
        try:
            event()
        except (Error, OSError) as error:
            self._fail(told(self._cause(error)))

    def _cause(self, error: Error | OSError) -> Error | OSError:
        """That the store is gone, if it is: then nothing in it is found either."""
        try:
            self.store.check_place(self.lock.fence)
        except StoreRefused as gone:
            return gone
        except OSError:  # it has no descriptor of it
            pass
        return error

    def _do(self, actions: Iterable[Action]) -> None:
        decided = list(actions)
        shows = self.machine.state not in (*LAST_STATES, State.RESTORING)
        is_awaited = Action.RELEASE_LIVE in decided
        if shows and not is_awaited:
            self._show()  # taking over is not held up by saying so; restoring is shown when it is
        for action in decided:
            self._act(action)
        if shows and is_awaited:
            self._show()
        if self.network is not None and self.machine.state == State.PASSIVE:
            self._tell_network(self.network)

    def _tell_network(self, network: ordering.Networked) -> None:
        """Who is live, so that it can tell programs."""
        found = None
        with suppress(Error, OSError):  # who needs it will find out
            found = self.lock.record_if_whole()
        if found is not None and found.state == record.LIVE and found.epoch != self.told_epoch:
            self.told_epoch = found.epoch
            network.waits(self.store.node, found.epoch)

    def _show(self) -> None:
        """What has changed of the state."""
        machine = self.machine
        status = Status(
            machine.state.value, machine.is_announced, self._known(), self.why, self.process
        )
        if status == self.shown:
            return
        is_news = self.shown is None or self.shown.state != status.state
        self.shown = status
        if is_news:  # first, so that whoever has waited for a state finds its line
            why = {"why": self.why} if self.why else {}
            self.log.write(status.state, role=self.config.role, epoch=status.epoch, **why)
        self._written(self.config.folder / RUN / "status", self._show_again)
        waits = self.config.wait_for_activation and machine.is_original
        started = machine.state == State.LIVE if waits else machine.state != State.STARTING
        if started and not self.is_ready:
            self.is_ready = True
            self._in_background(partial(self._tell, machine.state.value))

    def _tell(self, state: str) -> None:
        try:
            notify.ready(state)
        except OSError as error:
            why = f"systemd was not told that we are {state}: NOTIFY_SOCKET: {error.strerror}"
            self.inbox.put(lambda: self.log.write("warning", why=why))

    def _known(self) -> int:
        """The epoch, as far as it can be read."""
        try:
            found = self.lock.record_if_whole()
        except (Error, OSError):  # its disk may be what has failed
            found = None
        return found.epoch if found is not None else self.epoch

    def _show_again(self) -> None:
        assert self.shown is not None
        self.sign.show(self.shown)

    def _written(self, path: Path, write: Callable[[], None]) -> None:
        """Write it, now or as soon as that is possible: what it says is no reason to end."""
        try:
            write()
        except OSError as error:
            is_news = path not in self.unwritten
            self.unwritten[path] = write
            if is_news:
                self._retry(path)
                self.log.write("warning", why=f"{path} is not written: {error.strerror}")
        else:
            self.unwritten.pop(path, None)

    def _retry(self, path: Path) -> None:
        def again() -> None:
            write = self.unwritten.get(path)
            if write is None:
                return  # something newer was written there meanwhile
            self._written(path, write)
            if path in self.unwritten:
                self._retry(path)

        self._later(again)

    def _later(self, event: Callable[[], object], seconds: float = full_disk.RETRY_SECONDS) -> None:
        timer = threading.Timer(seconds, lambda: self.inbox.put(event))
        timer.daemon = True
        timer.start()

    def _act(self, action: Action) -> None:
        raise NotImplementedError

    def _is_full(self, what: str, why: str) -> None:
        """It waits for room, and goes on by itself; said once."""
        is_news = what not in self.full
        self.full[what] = why
        if is_news:
            self._say_full(why)
            self._tell_full()

    def _say_full(self, why: str, sign: Sign | None = None) -> None:
        self.log.write("disk full", why=why)
        with suppress(OSError):  # it may be a file on that disk; the log and `status` say the same
            sys.stderr.write(f"shmbroker: {self.config.name} waits for room on the disk: {why}\n")
            sys.stderr.flush()
        if sign is not None:
            signals.ignored((signal.SIGHUP, ordering.SIGNAL))  # whoever it names is sent them
            with suppress(OSError):
                sign.show(Status("starting", why=f"disk full: {why}", process=self.process))

    def _has_room(self, what: str) -> None:
        if what in self.full:
            self.log.write("disk has room")
        self._forget_full(what)

    def _forget_full(self, what: str) -> None:
        if self.full.pop(what, None) is not None:
            self._tell_full()

    def _tell_full(self) -> None:
        if self.machine.state not in LAST_STATES:
            self.why = "; ".join(f"disk full: {why}" for why in self.full.values())
            self._show()

    def _in_background(
        self, work: Callable[[], Answer], then: Callable[[Answer], object] | None = None
    ) -> threading.Thread:
        def run() -> None:
            try:
                answer = work()
            except (Error, OSError) as error:
                why = told(error)
                self.inbox.put(lambda: self._fail(why))
                return
            if then is not None:
                self.inbox.put(lambda: then(answer))

        thread = threading.Thread(target=run, daemon=True)
        start(thread)
        return thread

    def _asked_to_reload(self) -> None:
        self.inbox.put(self._reload)

    def _reload(self) -> None:
        if self.reload is None:
            return
        former = self.config
        self.config, answer = reloading.again(self.reload, former, self.log)
        if self.machine.state == State.LIVE:
            listed.reloaded(former, self.config, self.log)
        self.reloads.asked(answer)
        if self.network is None:
            self._reloaded(answer)
        else:  # who hears the answer may use what the network has from then on
            self._in_background(self.network.settles, lambda _: self._reloaded(answer))

    def _reloaded(self, answer: dict[str, Any]) -> None:
        self._written(self.reloads.place, lambda: self.reloads.write(answer, answer))

    def _asked_to(self) -> None:
        self.inbox.put(self._next_order)

    def _next_order(self) -> None:
        if (order := self.orders.next()) is not None:
            self._in_background(partial(self._carry_out, order), self._carried_out)

    def _carry_out(self, order: dict[str, Any]) -> tuple[dict[str, Any], str, str]:
        """The order, why it is not done, and what came of it."""
        why = said = ""
        try:
            if self.network is None:
                raise InvalidArgument("this broker has no network")
            said = self.network.order(order)
        except (Error, OSError) as error:
            why = told(error)
        return order, why, said

    def _carried_out(self, done: tuple[dict[str, Any], str, str]) -> None:
        self._written(self.orders.answers.place, lambda: self.orders.answer(*done))

    def _signalled(self) -> None:
        self.stops += 1
        self.inbox.put(lambda: self._do(self.machine.stop()))

    def fails(self, why: str) -> None:
        """It cannot go on; from any thread."""
        self.inbox.put(lambda: self._fail(why))

    def _fail(self, why: str) -> None:
        if self.machine.state not in LAST_STATES:
            self.why = why
            self._do(self.machine.fail())
