"""What the process of a broker asks of Python: its threads wait for each other, and confirms for
one of them."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0005
"""After so long a thread that computes lets another one go on.  Python's 5 ms are a multiple of
what a confirm takes, and a takeover has ten steps by threads in turn."""

YOUNG_MAX: Final = 10_000
"""Objects that may be there before Python looks among them for garbage.  All threads stop for that:
with its own 700 each takeover had one such stop, and two of five a long one, milliseconds."""


def shares_often() -> None:
    sys.setswitchinterval(SWITCH_SECONDS)


def keeps_what_is_there() -> None:
    """It stays until the process ends: looking through it for garbage would stop all threads."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *gc.get_threshold()[1:])
