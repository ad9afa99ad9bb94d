"""The link between the brokers of a pair: the backup connects to the primary.

Only what comes over the newest connection counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.pair.codec import Said, decode, encode
from shmbroker.netbridge.pair.told import Told
from shmbroker.netbridge.wire.frame import Frame, Talk
from shmbroker.netbridge.wire.malformed import Malformed

Tell = Callable[[Mapping[str, Any]], None]


class Hears(Protocol):
    """Called in the network thread."""

    def linked(self) -> None: ...

    def told(self, what: Told) -> None: ...


class Talks:
    """Of the network thread."""

    def __init__(self, hears: Hears, tell: Tell, *, is_primary: bool) -> None:
        self._hears, self._tell, self._is_primary = hears, tell, is_primary
        self._end: End | None = None
        self._is_refused = False
        """That was told: the other one tries again and again."""

    def say(self, what: Told) -> None:
        if self._end is not None:
            self._end.say(Talk(encode(Said(self._is_primary, what))))

    @property
    def is_linked(self) -> bool:
        return self._end is not None

    # --- of the ends --------------------------------------------------------------------------

    def came(self, end: End) -> None:
        self._end = end
        self._hears.linked()

    def heard(self, end: End, frame: Frame) -> None:
        if end is not self._end or not isinstance(frame, Talk):
            return
        try:
            said = decode(frame.body)
        except Malformed as error:
            end.does(end.machine.malformed(error, time.monotonic()))
            return
        if said.is_primary is self._is_primary:
            self._refuse(end)
        else:
            self._is_refused = False
            self._hears.told(said.told)

    def _refuse(self, end: End) -> None:
        which = "primary" if self._is_primary else "backup"
        why = f"both brokers of the pair are its {which}"
        if not self._is_refused:
            self._is_refused = True
            self._tell({"event": "pair", "level": "error", "what": why,
                        "detail": "ha.pair.is-primary and ha.pair.is-backup"})  # fmt: skip
        end.does(end.machine.refuse(Reason.DROPPED, why, time.monotonic()))

    def gone(self, end: End) -> None:
        if end is self._end:
            self._end = None
