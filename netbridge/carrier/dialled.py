"""The end that connects, of a link that somebody serves as a listener's links are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.link.ending import Ending, State
from shmbroker.netbridge.wire.frame import Frame

if TYPE_CHECKING:
    from shmbroker.netbridge.carrier.listener import Serving


class Dialled(Link):
    def __init__(self, serves: Serving, *given: Any, **named: Any) -> None:
        self._serves = serves
        super().__init__(*given, **named)

    def became(self, end: End, state: State) -> None:
        super().became(end, state)
        if state is State.UP:
            end.hears = self._serves.heard
            self._serves.came(end)

    def heard(self, end: End, frame: Frame) -> None:
        self._serves.heard(end, frame)

    def ended(self, end: End, how: Ending) -> None:
        self._serves.gone(end)
        super().ended(end, how)
