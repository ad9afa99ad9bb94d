"""The network of a broker of a pair: as any other, with a link to the other one and a gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from shmbroker.ipc.base.errors import ConnectionClosed
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import write_whole
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.network import Network, Place, Tell
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.pair.option import PairConfig
from shmbroker.netbridge.paired import options
from shmbroker.netbridge.paired.acting import Acting
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.wire.words import PAIR_LINK, Role

PAIR: Final = "pair"
"""The file in run/ with what `status` shows of it."""


class PairedNetwork(Network):
    def __init__(
        self,
        place: Place,
        given: Given,
        stopped: set[str],
        tell: Tell,
        later: Callable[[Callable[[], None]], None],
        found: PairConfig,
    ) -> None:
        super().__init__(
            replace(place, served=frozenset({found.vhost})), given, stopped, tell, later
        )
        self.acting = Acting(options.of_machine(found), self, tell)
        self.gate, self.pairs = self.acting, self.acting.talks
        self.ships = False
        self._found = found
        self._link: Dialled | None = None

    def serve(self, ours: Identity) -> None:
        self._thread.ask(self._begin_acting)
        super().serve(ours)
        self.show()  # whoever reads it may come: it listens
        if not self._found.is_primary:
            self._link = self._dialled(ours)

    def reload(self, given: Given) -> None:
        """With another password, or another key there, the link is made anew."""
        before, link = self._keys(), self._link
        super().reload(given)
        if link is not None and self._keys() != before:
            link.close()
            self._link = self._dialled(link.ours)

    def _begin_acting(self) -> None:
        if self.acting not in self._thread.members:  # else it is tried again
            self._thread.members.append(self.acting)
            self.acting.begin(time.monotonic())

    def _keys(self) -> tuple[Credential, bytes | None]:
        """What it says, and the key of our acceptor, if that comes from a password."""
        credential = self.given.credentials.named(self._found.credentials)
        assert credential is not None, "the configuration was checked"
        acceptor = options.listening(self.given.wanted)[0]
        key = self.given.key_of(acceptor) if acceptor.credentials is not None else None
        return credential, None if key is None else public_of(key.listening)

    def _dialled(self, ours: Identity) -> Dialled:
        credential, own = self._keys()
        return Dialled(
            self.acting.talks, self._thread, PAIR_LINK, options.other(self._found, own),
            credential, ours, (), times=times_of(self.given.wanted.link_defaults),
            role=Role.PEERING, tell=self.tell, pair=self.given.pair,
        )  # fmt: skip

    def close(self, *, at_once: bool = False) -> None:
        """The other one is told: it does not wait for our silence."""
        with suppress(ConnectionClosed):  # the thread has ended
            self._thread.ask(self.acting.stop)
        if self._link is not None:
            self._link.close()
        super().close(at_once=at_once)

    # --- from outside of the thread -----------------------------------------------------------

    def reset(self) -> str:
        """Why it is not done, or nothing."""
        return self._thread.ask(self.acting.reset)

    def show(self) -> None:
        self._thread.ask(lambda: self.shows(self.acting.shown))

    def patience(self, failover_timeout: float) -> None:
        self._thread.ask(lambda: self.acting.patience(failover_timeout))

    # --- of the machine, in the network thread ------------------------------------------------

    def close_applications(self, why: str) -> None:
        for listener in list(self.listeners.values()):
            listener.close_applications(why)

    def became(self, *, is_active: bool) -> None:
        self._later(partial(self.ship, is_active))
        if is_active:
            for listener in list(self.listeners.values()):
                listener.call_back()

    def shows(self, shown: Mapping[str, Any]) -> None:
        with suppress(OSError):  # what it says is no reason to end
            write_whole(self.place.folder / RUN / PAIR, dict(shown))
