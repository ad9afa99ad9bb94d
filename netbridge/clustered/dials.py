"""The links of a member to the lives that it wants to reach: made, tried at once, and ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from functools import partial
from typing import Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker

GOODBYE_SECONDS: Final = 1.0


class Dials:
    """Of the network thread, but for `close`."""

    def __init__(
        self,
        thread: NetworkThread,
        worker: Worker,
        makes: Callable[[str], Dialled],
        fails: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        """`makes`: called in the worker; `fails`: told why there is no link to an address;
        `changed`: what is wanted is to be said again."""
        self._thread, self._worker = thread, worker
        self._makes, self._fails, self._changed = makes, fails, changed
        self._there: dict[str, Dialled | None] = {}
        """By uri; None: it is being made, or ends."""
        self._is_closed = False

    def wants(self, uris: Set[str]) -> None:
        for uri in uris - self._there.keys():
            self._there[uri] = None
            self._worker.do(partial(self._makes, uri), partial(self._made, uri))
        for uri in self._there.keys() - uris:
            dial = self._there[uri]
            if dial is not None:
                self._there[uri] = None
                dial.over = partial(self._thread.call, partial(self._ended, uri))
                dial.stop()

    def start(self, uri: str) -> None:
        """Nothing, if it is up or being tried."""
        if (dial := self._there.get(uri)) is not None:
            dial.start()

    def close(self) -> None:
        """In good order: for members that vote that is a release."""
        dials = self._thread.ask(self._last)
        ends_at = time.monotonic() + GOODBYE_SECONDS
        for each in dials:
            each.stop()
        for each in dials:
            each.ended_at.wait(max(0.0, ends_at - time.monotonic()))
            self._thread.ask(each.end)

    def _last(self) -> list[Dialled]:
        self._is_closed = True
        return [each for each in self._there.values() if each is not None]

    def _made(self, uri: str, dial: Dialled | Exception) -> None:
        if isinstance(dial, Error):  # an address that somebody has told and that is none
            self._fails(told(dial))
        elif isinstance(dial, Exception):
            raise dial
        elif self._is_closed:
            dial.stop()
        else:
            self._there[uri] = dial
            self._changed()

    def _ended(self, uri: str) -> None:
        del self._there[uri]
        self._changed()
