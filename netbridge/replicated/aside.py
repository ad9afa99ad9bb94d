"""Tells people of messages that no other member has: one line here, and one at the live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.said import Diverged
from shmbroker.netbridge.replicated import diverged
from shmbroker.netbridge.replicated.store import Store
from shmbroker.netbridge.replicated.talks import Talks

DIVERGED: Final = "diverged"


class Links(Protocol):
    """`acting.Acting`."""

    talks: Talks
    machine: Member


class Aside:
    """Of the network thread."""

    def __init__(
        self, links: Links, store: Store, worker: Worker, line: Callable[..., None]
    ) -> None:
        self._links, self._store, self._worker, self._line = links, store, worker, line
        self._untold: list[Diverged] = []

    def begin(self) -> None:
        """What a former process has not come to."""
        if self._store.marks.is_whole and not diverged.is_counted(self._store.path):
            self.count()

    def count(self) -> None:
        """The journal is whole: what was set aside before may go, as far as none is kept."""
        path, most = self._store.path, self._store.terms.saved_journals
        self._worker.do(lambda: diverged.counted(path, most), self._counted, of=DIVERGED)

    def _counted(self, told: list[diverged.Kept] | Exception) -> None:
        if isinstance(told, Exception):
            self._line("warning", why=str(told))
            return
        for each in told:
            if each.messages:
                news = Diverged(
                    each.messages, each.size, each.is_exact, each.epoch, each.holder, each.number
                )
                self.write(self._store.config.name, news)
                self._untold.append(news)
        self.tell()

    def tell(self) -> None:
        """The live is there, perhaps."""
        links = self._links
        while self._untold and links.talks.say(links.machine.live, self._untold[0]):
            del self._untold[0]

    def write(self, member: str, what: Diverged) -> None:
        """`member`: whose journal it was."""
        most = "" if what.is_exact else "at most "
        self._line(
            DIVERGED, level="error", member=member, messages=what.messages, bytes=what.size,
            exact=what.is_exact, epoch=what.epoch, holder=what.holder, set=what.number,
            why=f"{member} has set aside {most}{what.messages} messages that no other member has: "
            "shmbroker journal diverged list",
        )  # fmt: skip
