"""Being live: taking over, writing the journal and the pages, repairing, handing over."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from shmbroker.ipc.base.errors import (
    ConnectionClosed,
    DiskFull,
    Error,
    InUse,
    Replaced,
)
from shmbroker.ipc.broker.journaler import Restored
from shmbroker.ipc.broker.store_writer import StoreWriter
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance import formats, full_disk, leaving, listed, moving, repairing, rings
from shmbroker.ipc.instance.beat import Beat
from shmbroker.ipc.instance.candidate import Candidate
from shmbroker.ipc.instance.lock import record
from shmbroker.ipc.instance.lock.record import Record
from shmbroker.ipc.instance.machine import Actions, State
from shmbroker.ipc.instance.spooling import Spooling
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.ipc.paging.pager import Pager

LIVE_ONLY: Final = "live-only"


class StoppedTwice(Error):
    """What was restored until then is no whole: the next live does it anew."""


class Live(Candidate):
    """From taking over until others may."""

    def _go_live(self) -> None:
        try:
            self._take_over()
        except Replaced as error:
            self._ended(error)
            return
        except StoppedTwice:
            return  # both are in the inbox: the second one ends it at once
        except (Error, OSError) as error:
            if not full_disk.is_full(error):
                raise
            self._go_live_later(str(error))
            return
        self._has_room("start")
        drains = False
        if self.network is not None:
            self.told_epoch, drains = -1, self.network.drains
            self.network.begin(self.store.node, self.epoch)
        self.lock.failback_done()  # before anybody else is announced, who may ask at once
        self._do(self.machine.went_live(drains=drains))
        listed.make_in_background(self.config, self.log)
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

    def _take_over(self) -> None:
        if not self.lock.is_held:  # before anything is touched that another live has
            raise Replaced("the lease on being live ran out before it took over")
        self.store.check_place(self.lock.fence)
        formats.check_journal(self.store.journal)  # who was live may be of a later version
        former = self.lock.record()
        if former.state == record.SCALED_DOWN:
            leaving.empty(self.store, self.config.vhost, self.lock)
        elif (there := rings.found(self.config.vhost)).is_whole and (
            there.is_moved or self.config.policy == LIVE_ONLY
        ):
            moving.serves(self.config.vhost)  # who was live was killed while it gave all away
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
            known = 0 if former.is_mended else read_whole(self.ours).get("identity", 0)
            rings.refuse_others(self.config, known)  # before the record: the next start does, too
            self._show()
            self.lock.write(me)
            self.broker, restored = rings.restored(
                self.config,
                known,
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
            more = self.network.counts if self.network is not None else dict
            self.spooling = Spooling(self.config, self.log, more)

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
        if self.stops > 1:
            raise StoppedTwice("it was stopped twice while it restored")
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

        def repair() -> None:
            if repaired := broker.repair_for():
                self.log.write("repaired what a participant left", repairs=repaired)

        with suppress(ConnectionClosed):
            repairing.for_ever(repair, lambda why: self.log.write("warning", why=why))

    def _hand_over(self) -> None:
        self._in_background(self._let_go, lambda _: self._do(self._handed_over()))

    def _handed_over(self) -> Actions:
        is_drained = self.left is not None and self.left.is_whole
        return self.machine.handed_over(is_drained=is_drained or not self.machine.is_draining)

    def _let_go(self) -> None:
        """Write what is there, and leave the vhost."""
        journaler, pager, broker = self.journaler, self.pager, self.broker
        is_given_away = self._give_away()
        if self.network is not None:  # while there is somebody who confirms
            if self.machine.is_failing_back and not self.machine.is_lost:
                self.network.gives_back()
            self.network.end(at_once=self.machine.is_lost)
        if self.spooling is not None:
            self.spooling.end()
            self.spooling = None
        if pager is not None:
            pager.stop()
        self._get_ready_to_end()
        if journaler is not None:
            journaler.stop()  # nothing is confirmed until the next live does it: be quick from here
        for follower in self.followers:
            follower.join()
        if pager is not None:
            pager.close()
        if self.beat is not None:
            self.beat.end()
        if is_given_away and broker is not None:
            why = leaving.left_behind(broker)
            self.left = leaving.Left(not why, why)
        if broker is not None:
            broker.close()
        if journaler is not None:
            journaler.close()
        if self.left is not None:
            self._has_left(self.left)
        self.journaler = self.pager = self.broker = None
        self.followers = []

    def _get_ready_to_end(self) -> None:
        """What takes long, while there is somebody who confirms.

        Who is killed between this word and the last frame is replaced as any live is.
        """
        machine, journaler = self.machine, self.journaler
        if journaler is None or machine.state != State.HANDING_OVER or machine.is_lost:
            return
        journaler.quiet()
        if machine.is_for_another and self.left is None:
            self._say(record.HANDED_OVER)

    def _give_away(self) -> bool:
        """Whether it was.  What is still here then is looked at when nobody publishes any more;
        who is stopped at once before that is not known to have nothing."""
        machine = self.machine
        gives = machine.is_stopping or machine.is_draining
        if machine.state != State.HANDING_OVER or not gives or machine.is_lost:
            return False
        if self.network is None:
            return False
        given = self.network.gives_away(self._parts)  # until then what _parts says
        is_given_away = given is not None and given.is_whole
        self.left = leaving.UNSEEN if is_given_away else given
        return is_given_away

    def _parts(self, to: str, ours: Broker) -> None:
        """Programs go; what serves others here goes on."""
        assert self.broker is not None
        self.left = leaving.UNSEEN
        moving.departs(self.config.vhost, to, self.broker, ours)

    def _has_left(self, left: leaving.Left) -> None:
        if not left.is_whole:
            self.why = left.why
            moving.serves(self.config.vhost)  # as after any stop
            self.log.write("not scaled down", why=left.why)

    def _say(self, state: str) -> None:
        if state == record.STOPPED and self.left is not None and self.left.is_whole:
            state = record.SCALED_DOWN
        try:
            said = self.lock.record()
            if said.state != state:
                self.lock.write(replace(said, state=state))
        except (Replaced, OSError) as error:
            self.log.write("warning", why=f"nobody is told that this live is {state}: {error}")
        if not self.machine.is_stopping:  # a backup has drained, or tries again
            self.left = None
