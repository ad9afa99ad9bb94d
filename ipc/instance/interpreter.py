"""What the process of a broker asks of Python: its threads wait for each other, and confirms for
one of them."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0005
"""After so long a thread that computes lets another one go on.  Python's 5 ms are a multiple of
what a confirm takes, and a takeover has ten steps by threads in turn."""


def shares_often() -> None:
    sys.setswitchinterval(SWITCH_SECONDS)


def keeps_what_is_there() -> None:
    """It stays until the process ends: looking through it for garbage would stop all threads."""
    gc.collect()
    gc.freeze()
