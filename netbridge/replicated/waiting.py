"""The actions that wait for their turn: one is carried out after the other, and while the worker is
at one, those behind it wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.election.candidate import Ask
from shmbroker.netbridge.member.action import Action

T = TypeVar("T")


class Waiting:
    """Of the network thread."""

    def __init__(
        self,
        worker: Worker,
        carries_out: Callable[[Action], None],
        done: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        """`done`: the worker has done its part; `failed`: it could not, and what waited behind that
        is left undone."""
        self._worker, self._carries_out = worker, carries_out
        self._done, self._failed = done, failed
        self._actions: deque[Action] = deque()
        self._is_busy = self._is_blocked = False
        self.may_ask = False
        """What has come is being written; voters need not wait, `Begin` does."""

    def add(self, actions: Iterable[Action]) -> None:
        self._actions.extend(actions)

    def go_on(self) -> bool:
        """As far as nothing is to be waited for.  False: who carries one out is at it, and does
        this then."""
        if self._is_busy:
            return False
        self._is_busy = True
        try:
            while self._actions and (not self._is_blocked or self._asks_next):
                self._carries_out(self._actions.popleft())
        finally:
            self._is_busy = False
        return True

    @property
    def _asks_next(self) -> bool:
        return self.may_ask and isinstance(self._actions[0], Ask)

    def meanwhile(
        self, work: Callable[[], T], then: Callable[[T], None], of: Hashable = None
    ) -> None:
        """By the worker; the next action comes after that."""
        self._is_blocked = True

        def came(told: T | Exception) -> None:
            self._is_blocked = self.may_ask = False
            if isinstance(told, Exception):
                if not isinstance(told, (Error, OSError)):
                    raise told
                self._actions.clear()
                self._failed(str(told))
            else:
                then(told)
                self._done()

        self._worker.do(work, came, of)

    def has(self, kind: type[Action]) -> bool:
        """The machine has changed its mind since."""
        return any(isinstance(each, kind) for each in self._actions)

    def takes(self, wanted: Callable[[Action], bool]) -> list[Action]:
        """Those go before all others."""
        found = [each for each in self._actions if wanted(each)]
        for each in found:
            self._actions.remove(each)
        return found
