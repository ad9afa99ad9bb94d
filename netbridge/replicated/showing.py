"""Writes what people and scripts read of a member, run/status and run/ha."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.instance.latest import Latest
from shmbroker.ipc.instance.status import RUN, Sign, Status
from shmbroker.ipc.instance.whole import write_whole

HA: Final = "ha"
"""The file in run/ with what `ha status` shows."""


class Showing:
    """From any thread; the network thread waits for no disk, least of all in a takeover."""

    def __init__(self, folder: Path, sign: Sign) -> None:
        self._sign, self._ha = sign, folder / RUN / HA
        self._latest = Latest("shows")

    def status(self, status: Status) -> None:
        self._latest.say("status", partial(self._sign.show, status))

    def whole(self, told: dict[str, Any]) -> None:
        """Of `ha status`."""
        self._latest.say(HA, partial(write_whole, self._ha, told))

    def wait(self) -> None:
        """Until all that was shown before is there to be read."""
        self._latest.wait()
