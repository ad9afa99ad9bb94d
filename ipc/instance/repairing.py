"""Repairing what the dead leave, for as long as there is a broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from shmbroker.ipc.base.errors import ConnectionClosed, Error

AGAIN_SECONDS: Final = 1.0
SAYS_SECONDS: Final = 60.0


def for_ever(repair: Callable[[], object], warn: Callable[[str], object]) -> None:
    """Until the connection is closed.  What cannot be repaired now may be later, and all else is
    in use meanwhile: so it is tried again, and said once in a while."""
    says_at = time.monotonic()
    while True:
        try:
            repair()
        except ConnectionClosed:
            raise
        except Error as error:
            if time.monotonic() >= says_at:
                warn(str(error))
                says_at = time.monotonic() + SAYS_SECONDS
            time.sleep(AGAIN_SECONDS)
