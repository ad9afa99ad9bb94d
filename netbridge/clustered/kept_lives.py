"""How many lives were seen, as it is kept: by a thread that may wait for the disk, and again if it
was full."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from shmbroker.ipc.base.refusal import told
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.election.threshold import Quorum

AGAIN_SECONDS: Final = 1.0


class KeptLives:
    """Of the network thread."""

    def __init__(
        self, worker: Worker, keeps: Callable[[Quorum], None], fails: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:  # fmt: skip
        """`keeps`: called in the worker; `fails`: told why it is not kept, each time; `changed`:
        `due` is another one."""
        self._worker, self._keeps, self._fails, self._changed = worker, keeps, fails, changed
        self._last = Quorum()
        self.failure: OSError | None = None
        """Why the last number is not kept."""
        self.due = math.inf

    def keep(self, quorum: Quorum) -> None:
        self._last = quorum
        self._worker.do(partial(self._keeps, quorum), self._kept)

    def tick(self, now: float) -> None:
        if now >= self.due:
            self.due = math.inf
            self.keep(self._last)

    def _kept(self, failed: Exception | None) -> None:
        if failed is not None and not isinstance(failed, OSError):
            raise failed
        self.failure = failed
        if failed is not None:
            self._fails(told(failed))
        self.due = math.inf if failed is None else time.monotonic() + AGAIN_SECONDS
        self._changed()
