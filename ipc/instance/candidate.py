"""An instance and the locks: waiting for them, holding them, losing them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from shmbroker.ipc.base.errors import (
    DiskFull,
    Error,
    Replaced,
)
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.instance import full_disk, mending, promotion, rings
from shmbroker.ipc.instance.lock.live_lock import News, Told
from shmbroker.ipc.instance.lock.record import Record, RecordDamaged
from shmbroker.ipc.instance.loop import Loop
from shmbroker.ipc.instance.machine import State
from shmbroker.ipc.instance.stall import StallWatch

PREPARED_SECONDS: Final = 0.02
"""How often is looked whether what must be ready for a failback is."""


class Candidate(Loop):
    """Whoever waits to be live, and what it has ready for that."""

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
        epoch = self.lock.record().epoch
        if self.network is None:
            self._ask_when_ready(epoch)
            return
        # who gives the role back tells programs where we are: so that is said before we ask
        self._tell_network(self.network)
        self._in_background(self.network.settles, lambda _: self._ask_when_ready(epoch))

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
            is_asked = self.lock.ask_failback(epoch)
        except (DiskFull, OSError) as error:
            if not full_disk.is_full(error):
                raise
            self._is_full("failback", str(error))
            self._later(lambda: self._ask_when_ready(epoch))
            return
        self._has_room("failback")
        if is_asked:
            self.log.write("asked for the role back")
        else:  # the database is gone for now, and we may be announced when it is back
            self._later(lambda: self._ask_when_ready(epoch))

    def _ask_command(self) -> None:
        self.promotions += 1
        former = self.lock.record()
        config, node = self.config, self.store.node
        self._in_background(
            lambda: promotion.refusal(config, former.epoch + 1, node, former.instance),
            partial(self._answered, self.promotions, former.epoch),
        )

    def _answered(self, number: int, about: int, refusal: str | None) -> None:
        """`number`: that of the promotion for which the command was run; `about`: whose epoch."""
        found = self.lock.record()
        is_asked = (number, about) == (self.promotions, found.epoch)
        if self.machine.state != State.PROMOTING or not is_asked:
            return  # the lease was lost meanwhile
        goes_on = refusal is None or self.config.on_promote_failure == "continue"
        if refusal:
            self.log.write("on-promote failed" if goes_on else "on-promote refused", why=refusal)
        self._do(self.machine.answered(goes_on, found))
        if not goes_on:
            self._detach()

    def _ended(self, error: Error) -> None:
        """We may not write any more, or cannot."""
        if isinstance(error, Replaced) and self.lock.is_lease:
            self._lost(str(error))
        else:
            self._fail(str(error))

    def _lost(self, why: str) -> None:
        if self.machine.state in (State.PROMOTING, State.RESTORING, State.LIVE):
            self.log.write("lost the lease", epoch=self.epoch, why=why)
        self._do(self.machine.lost())
