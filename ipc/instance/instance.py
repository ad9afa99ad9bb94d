"""The process of an instance: does what its machine says.

One thread decides, and everything that waits does so in a thread of its own, in the kernel: for a
lock, for news of it, for the death of a participant, for the journaler's end.  They
leave word in the inbox.  So between a live's death and its backup's first confirm nobody sleeps.
"""

from __future__ import annotations

import errno
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Final, TypeVar

from shmbroker.ipc.base.errors import (
    ConnectionClosed,
    DiskFull,
    Error,
    InUse,
    Replaced,
    SystemRefused,
)
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.broker.journaler import Journaler, Progress, Restored, keep_memory
from shmbroker.ipc.broker.store_writer import StoreWriter
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance import full_disk, mending, notify, process, promotion, rings
from shmbroker.ipc.instance.beat import Beat
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.lock import lock_test, record
from shmbroker.ipc.instance.lock.file_lock import FileLock
from shmbroker.ipc.instance.lock.live_lock import LiveLock, News, Told
from shmbroker.ipc.instance.lock.record import Record, RecordDamaged
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.machine import Action, Machine, Options, State
from shmbroker.ipc.instance.mount import warnings
from shmbroker.ipc.instance.spooling import Spooling
from shmbroker.ipc.instance.stall import StallWatch
from shmbroker.ipc.instance.status import RUN, Sign, Status
from shmbroker.ipc.instance.store import FILE_LOCK, Store
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.ipc.paging.pager import Pager

Answer = TypeVar("Answer")

PREPARED_SECONDS: Final = 0.02
"""How often is looked whether what must be ready for a failback is."""

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
LAST_STATES: Final = (State.STOPPED, State.FAILED)


def lock_of(config: Config, store: Store, *, moved: bool = False) -> LiveLock:
    if config.lock == FILE_LOCK:
        lock_test.check(store.path)
        return FileLock(store.path)
    from shmbroker.ipc.instance.lock.sql_lock import SqlLock

    return SqlLock(config, store, moved=moved)


class Instance:
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
        self.why = ""
        self.epoch = 0
        self.is_ready = False
        self.inbox: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self.broker: Broker | None = None
        self.journaler: Journaler | None = None
        self.attached: rings.Attached | None = None
        """While we are next: to the rings of who is live."""
        self.pager: Pager | None = None
        self.followers: list[threading.Thread] = []
        self.spooling: Spooling | None = None
        self.beat: Beat | None = None
        self.attempt = 0
        self.full: dict[str, str] = {}
        """What waits for room on a disk, and why."""
        self.unwritten: set[Path] = set()
        """Small files of ours that could not be written yet."""
        self.stall: StallWatch | None = None
        self.sign = self._first(lambda: Sign(config.folder))
        try:
            self.store = self._first(
                lambda: Store(config.store, config.vhost, config.lock, moved=moved), self.sign
            )
            self._first(self._mend, self.sign)
            self.lock = self._first(lambda: lock_of(config, self.store, moved=moved), self.sign)
        except Error:
            self.sign.close()
            raise
        for warning in warnings(self.store.mount):
            self.log.write("warning", why=warning)

    def _first(self, step: Callable[[], Answer], sign: Sign | None = None) -> Answer:
        """Of what comes before the loop: why it fails is in the log, and told to the caller."""
        try:
            return self._with_room(step, sign)
        except InUse:  # the log is that of the one who runs: it has not failed
            raise
        except (Error, OSError) as error:
            why = told(error)
            with suppress(OSError):
                self.log.write("failed", why=why)
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

    def _mend(self) -> None:
        """live.lock, if it does not say who is live, and nobody is."""
        done = mending.mend(self.store, self.config.lock, self.config.vhost, self.ours)
        if done is not None:
            self._say_mended(*done)

    def _say_mended(self, record: Record, damage: str) -> None:
        self.log.write("live.lock was made anew", why=damage, epoch=record.epoch)

    # --- the loop -----------------------------------------------------------------------------

    def run(self) -> int:
        """Until it is stopped, or cannot go on: the exit code.

        Threads of ours may still sleep in the kernel: leave by os._exit.
        """
        keep_memory()
        self._show()
        for number in SIGNALS:
            signal.signal(number, self._signalled)
        self._in_background(self._listen)
        self.inbox.put(lambda: self._do(self.machine.start()))
        while self.machine.state not in LAST_STATES:
            self._guarded(self.inbox.get())
        return 0 if self.machine.state == State.STOPPED else 1

    def _guarded(self, event: Callable[[], object]) -> None:
        try:
            event()
        except (Error, OSError) as error:
            self._fail(told(error))

    def _do(self, actions: Iterable[Action]) -> None:
        decided = list(actions)
        if self.machine.state not in (*LAST_STATES, State.RESTORING):
            self._show()  # taking over is not held up by saying so; restoring is shown when it is
        for action in decided:
            ACTIONS[action](self)

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
            if path not in self.unwritten:
                self.unwritten.add(path)
                self._retry(path, write)
                self.log.write("warning", why=f"{path} is not written: {error.strerror}")
        else:
            self.unwritten.discard(path)

    def _retry(self, path: Path, write: Callable[[], None]) -> None:
        def again() -> None:
            self._written(path, write)
            if path in self.unwritten:
                self._retry(path, write)

        self._later(again)

    def _later(self, event: Callable[[], object], seconds: float = full_disk.RETRY_SECONDS) -> None:
        timer = threading.Timer(seconds, lambda: self.inbox.put(event))
        timer.daemon = True
        timer.start()

    # --- a full disk --------------------------------------------------------------------------

    def _is_full(self, what: str, why: str) -> None:
        """It waits for room, and goes on by itself; said once."""
        is_news = what not in self.full
        self.full[what] = why
        if is_news:
            self._say_full(why)
            self._tell_full()

    def _say_full(self, why: str, sign: Sign | None = None) -> None:
        self.log.write("disk full", why=why)
        sys.stderr.write(f"shmbroker: {self.config.name} waits for room on the disk: {why}\n")
        sys.stderr.flush()
        if sign is not None:
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
        try:
            thread.start()
        except RuntimeError:
            raise SystemRefused(
                "no thread can be begun: raise the limit of processes (ulimit -u; TasksMax= in a "
                "unit), or of memory"
            ) from None
        return thread

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self.inbox.put(lambda: self._do(self.machine.stop()))

    def _fail(self, why: str) -> None:
        if self.machine.state not in LAST_STATES:
            self.why = why
            self._do(self.machine.fail())

    # --- the lock -----------------------------------------------------------------------------

    def _listen(self) -> None:
        while True:
            told = self.lock.news()
            self.inbox.put(partial(self._heard, told))

    def _heard(self, told: Told) -> None:
        if told.news == News.CHANGED:
            self._lock_changed()
        elif told.news == News.LOST:
            if not self.lock.is_held:  # or it is of before, and was taken again
                self._lost(told.why)
        elif told.news == News.UNANNOUNCED:
            self._do(self.machine.unannounced())
            self._detach()
        elif told.news == News.UNREACHABLE:
            self.log.write("database unreachable", why=told.why)
        else:
            self.log.write("database reachable")

    def _lock_changed(self) -> None:
        found = self.lock.record_if_whole()  # if not, there is word when it is
        if found is None:
            return
        self._do(self.machine.recorded(found))
        self._attach(found)
        if self.machine.state == State.LIVE and self.lock.is_failback_asked(self.epoch):
            self._do(self.machine.failback_asked())

    def _try_live(self) -> None:
        got = self.lock.try_live()
        self._do(self.machine.tried(got, self._record()))

    def _watch_stall(self) -> None:
        """All who wait do: who is announced may hang itself while it takes over."""
        if self.config.stall_limit and self.stall is None:
            self.stall = StallWatch(
                self.lock, self.config.vhost, self.config.stall_limit, self._killed
            )

    def _wait_announced(self) -> None:
        self._watch_stall()
        self._in_background(self.lock.wait_announced, lambda _: self._announced())

    def _announced(self) -> None:
        record = self.lock.record()
        self._do(self.machine.announced(record))
        self._attach(record)

    def _attach(self, record: Record) -> None:
        """Whoever waits for the live lock has the rings ready that go with it."""
        if self.machine.state != State.PASSIVE or not self.machine.is_announced:
            return
        wanted = record.rings if record.calls_for_backup else 0
        if self.attached is not None and self.attached.identity == wanted:
            return
        self._detach()
        if wanted:
            with suppress(Error):  # they are on another host: then ours come from the journal
                self.attached = rings.Attached(self.config.vhost)
        if self.attached is not None and self.attached.identity != wanted:
            self._detach()

    def _detach(self) -> None:
        if self.attached is not None:
            self.attached.close()
            self.attached = None

    def _prepare(self) -> None:
        if self.journaler is None:
            self.journaler = Journaler(
                self.store.journal, node=self.store.node, segment_bytes=self.config.segment
            )

    def _wait_live(self) -> None:
        self._watch_stall()
        self._in_background(self.lock.wait_live, lambda _: self._locked())

    def _killed(self, live: Record, age: float) -> None:
        self.log.write(
            "killed a live that hangs", live=live.instance, epoch=live.epoch, seconds=round(age, 3)
        )

    def _locked(self) -> None:
        if self.stall is not None:
            self.stall.end()
            self.stall = None
        self._do(self.machine.locked(self._record()))

    def _record(self) -> Record:
        """Whoever holds the place of the live makes it anew if it is damaged."""
        try:
            return self.lock.record()
        except RecordDamaged as damage:
            if self.lock.is_lease or not self.lock.is_held:
                raise
            attached = self.attached.identity if self.attached is not None else 0
            made = mending.mended(
                self.store, self.config.lock, self.config.vhost, self.ours, attached
            )
            self.lock.write(made)
            self._say_mended(made, str(damage))
            return made

    def _ask_failback(self) -> None:
        self._ask_when_ready(self.lock.record().epoch)

    def _ask_when_ready(self, epoch: int) -> None:
        """Not before there is room for what we would write as the live: else nobody could."""
        is_asking = self.machine.state == State.PASSIVE and self.machine.is_announced
        found = self.lock.record_if_whole() if is_asking else None
        if found is None or found.epoch != epoch or self.journaler is None:
            self._forget_full("failback")
            return
        try:
            if not self.journaler.is_prepared:
                self._later(lambda: self._ask_when_ready(epoch), PREPARED_SECONDS)
                return
            self.lock.ask_failback(epoch)
        except (DiskFull, OSError) as error:
            if not full_disk.is_full(error):
                raise
            self._is_full("failback", str(error))
            self._later(lambda: self._ask_when_ready(epoch))
            return
        self._has_room("failback")
        self.log.write("asked for the role back")

    def _ask_command(self) -> None:
        epoch = self.lock.record().epoch + 1
        self._in_background(lambda: promotion.refusal(self.config, epoch), self._answered)

    def _answered(self, refusal: str | None) -> None:
        if self.machine.state != State.PROMOTING:
            return
        if refusal:
            self.log.write("on-promote refused", why=refusal)
        self._do(self.machine.answered(refusal is None, self.lock.record()))
        if refusal:
            self._detach()

    # --- being live ---------------------------------------------------------------------------

    def _go_live(self) -> None:
        try:
            self._take_over()
        except Replaced as error:
            self._ended(error)
            return
        except (Error, OSError) as error:
            if not full_disk.is_full(error):
                raise
            self._go_live_later(str(error))
            return
        self._has_room("start")
        self._do(self.machine.went_live())
        self.lock.failback_done()
        self._lock_changed()

    def _go_live_later(self, why: str) -> None:
        self._let_go()
        self._is_full("start", why)
        self.attempt = attempt = self.attempt + 1

        def again() -> None:
            if self.machine.state != State.RESTORING or attempt != self.attempt:
                return
            if self.machine.is_stopping:
                self._do(self.machine.stop())
            else:
                self._go_live()

        self._later(again)

    def _ended(self, error: Error) -> None:
        """We may not write any more, or cannot."""
        if isinstance(error, Replaced) and self.lock.is_lease:
            self._lost(str(error))
        else:
            self._fail(str(error))

    def _lost(self, why: str) -> None:
        if self.machine.state in (State.RESTORING, State.LIVE):
            self.log.write("lost the lease", epoch=self.epoch, why=why)
        self._do(self.machine.lost())

    def _take_over(self) -> None:
        self.store.check_place(self.lock.fence)
        former = self.lock.record()
        self.epoch = former.epoch + 1
        me = Record(self.epoch, record.LIVE, self.config.name, self.process)
        restored: Restored | None = None
        self.broker = self._joined(former)
        if self.broker is None:
            rings.found(self.config.vhost)  # another user's is refused, and stays as it is
        self._beat()  # before the record says that we are live: from then on we may hang
        if self.broker and self.journaler:
            self.journaler.begin(self.epoch)  # while the disk keeps the record
        identity = former.rings if self.broker else rings.current(self.config.vhost, former)
        if identity:
            self.lock.write(replace(me, rings=identity))
            self.broker = self.broker or rings.attached(self.config)
        else:
            self._show()
            self.lock.write(me)
            self.broker, restored = rings.restored(
                self.config,
                0 if former.is_mended else read_whole(self.ours).get("identity", 0),
                lambda made: self._restoring(replace(me, rings=made)),
                self._restored_so_far,
            )
            identity = rings.found(self.config.vhost).identity
            self.log.write("restored", messages=restored.messages)
        self._begin(former, partial(self._journal, self.broker, restored))
        self._begin(former, partial(self._page, self.broker))
        ours = {"identity": identity, "epoch": self.epoch}
        self._written(self.ours, lambda: write_whole(self.ours, ours))
        self._in_background(self._repair_for_ever)
        if self.config.spool.path:
            self.spooling = Spooling(self.config, self.log)

    def _joined(self, former: Record) -> Broker | None:
        """The rings that we have ready, if they are what the former live had."""
        if self.attached is None or self.attached.identity != former.rings:
            self._detach()
            return None
        try:
            broker = self.attached.joined(rings.participant_name(self.config))
        except Error:
            self._detach()
            return None
        self.attached = None
        return broker

    def _begin(self, former: Record, work: Callable[[], None]) -> None:
        try:
            work()
        except InUse:  # it let go of the live lock, and not yet of its place as a participant
            self._see_out(former)
            work()

    def _see_out(self, former: Record) -> None:
        """Wait until who was live lets go of the journal; without a lease it is dying."""
        if former.process is None or former.process == self.process:
            raise InUse(f"somebody else writes the journal of vhost {self.config.vhost!r}")
        hangs = self.lock.is_lease and not former.process.has_ended
        if hangs and former.process.kill():
            self.log.write("killed a live that hangs", live=former.instance, epoch=former.epoch)
        former.process.wait_for_death()

    def _beat(self) -> Beat:
        try:
            self.beat = Beat(self.config.vhost)
        except OSError as error:
            if not full_disk.is_full(error) and error.errno != errno.EIO:
                raise
            why = f"no backup sees whether this live hangs: /dev/shm: {error.strerror}"
            self.log.write("warning", why=why)
            self.beat = Beat.unseen()
        self.beat.begin(self.epoch)
        return self.beat

    def _restoring(self, record: Record) -> None:
        self._beat()  # that of before went with the rings of before
        self.lock.write(record)

    def _restored_so_far(self, done: int, size: int) -> None:
        assert self.beat is not None
        self.beat.begin(self.epoch)
        if self.progress is not None:
            self.progress(done, size)

    def _journal(self, broker: Broker, restored: Restored | None) -> None:
        self._prepare()
        journaler, self.journaler = self.journaler, None
        assert journaler is not None
        assert self.beat is not None
        journaler.watched(self.lock.fence, self.beat.memory)
        journaler.placed(self.store.lock_file)
        journaler.leased(self.lock.until)
        try:
            journaler.start(broker, self.epoch, restored)
        except InUse:
            self.journaler = journaler  # as ready as before
            raise
        except Error:
            journaler.close()
            raise
        self.journaler = journaler
        self.followers = [self._in_background(lambda: self._follow(journaler, "journal"))]

    def _page(self, broker: Broker) -> None:
        pager = self.pager = Pager(
            broker,
            self.store.pages,
            epoch=self.epoch,
            fence=self.lock.fence,
            until=self.lock.until,
        )
        self.followers.append(self._in_background(lambda: self._follow(pager, "pages")))

    def _follow(self, writer: StoreWriter, what: str) -> None:
        """What the journaler or the pager says of itself, until it has ended."""
        for failure in writer.changes():
            if isinstance(failure, DiskFull):
                self.inbox.put(partial(self._is_full, what, str(failure)))
            elif failure is None:
                self.inbox.put(partial(self._has_room, what))
            else:
                self.inbox.put(partial(self._ended, failure))
        self.inbox.put(partial(self._forget_full, what))

    def _repair_for_ever(self) -> None:
        """Give to others what the dead have left, as soon as they die."""
        broker = self.broker
        assert broker is not None
        with suppress(ConnectionClosed):
            while True:
                if repaired := broker.repair_for():
                    self.log.write("repaired what a participant left", repairs=repaired)

    def _hand_over(self) -> None:
        self._in_background(self._let_go, lambda _: self._do(self.machine.handed_over()))

    def _let_go(self) -> None:
        """Write what is there, and leave the vhost."""
        journaler, pager, broker = self.journaler, self.pager, self.broker
        if self.spooling is not None:
            self.spooling.end()
            self.spooling = None
        if journaler is not None:
            journaler.stop()
        if pager is not None:
            pager.stop()
        for follower in self.followers:
            follower.join()
        if pager is not None:
            pager.close()
        if self.beat is not None:
            self.beat.end()
        if broker is not None:
            broker.close()
        if journaler is not None:
            journaler.close()
        self.journaler = self.pager = self.broker = None
        self.followers = []

    def _say(self, state: str) -> None:
        try:
            self.lock.write(replace(self.lock.record(), state=state))
        except (Replaced, OSError) as error:
            self.log.write("warning", why=f"nobody is told that this live is {state}: {error}")

    def _end(self) -> None:
        self._show()
        self._detach()
        if self.journaler is not None and self.broker is None:  # it was ready, and is not needed
            self.journaler.close()
            self.journaler = None
        if self.lock.is_lease and (self.journaler is None or self.journaler.has_ended):
            self.lock.close()


ACTIONS: Final[dict[Action, Callable[[Instance], None]]] = {
    Action.TRY_LIVE: Instance._try_live,
    Action.WAIT_ANNOUNCED: Instance._wait_announced,
    Action.WAIT_LIVE: Instance._wait_live,
    Action.RELEASE_ANNOUNCED: lambda instance: instance.lock.release_announced(),
    Action.RELEASE_LIVE: lambda instance: instance.lock.release_live(),
    Action.PREPARE: Instance._prepare,
    Action.ASK_FAILBACK: Instance._ask_failback,
    Action.ASK_COMMAND: Instance._ask_command,
    Action.GO_LIVE: Instance._go_live,
    Action.HAND_OVER: Instance._hand_over,
    Action.SAY_STOPPED: lambda instance: instance._say(record.STOPPED),
    Action.SAY_HANDED_OVER: lambda instance: instance._say(record.HANDED_OVER),
    Action.END: Instance._end,
}
