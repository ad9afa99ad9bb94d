"""Writes what people and scripts read of a member, run/status and run/ha.

In a thread of its own: the network thread waits for no disk, least of all in a takeover.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from shmbroker.ipc.instance.status import RUN, Sign, Status
from shmbroker.ipc.instance.whole import write_whole

HA: Final = "ha"
"""The file in run/ with what `ha status` shows."""


class Showing:
    """From any thread."""

    def __init__(self, folder: Path, sign: Sign) -> None:
        self._sign, self._ha = sign, folder / RUN / HA
        self._steps: SimpleQueue[Callable[[], object]] = SimpleQueue()
        threading.Thread(target=self._run, name="shows", daemon=True).start()

    def status(self, status: Status) -> None:
        self._steps.put(lambda: self._sign.show(status))

    def whole(self, told: dict[str, Any]) -> None:
        """Of `ha status`."""
        self._steps.put(lambda: write_whole(self._ha, told))

    def wait(self) -> None:
        """Until all that was shown before is there to be read."""
        done = threading.Event()
        self._steps.put(done.set)
        done.wait()

    def _run(self) -> None:
        while True:
            with suppress(OSError):  # what it says is no reason to end
                self._steps.get()()
