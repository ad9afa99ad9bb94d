"""Signals to an instance: each is heard in a thread of its own, whatever the main thread does.

What Python does about a signal it does in the main thread, when that runs.  A signal that comes as
the main thread goes to sleep, or that the kernel gives to another thread, does not wake it.  But
each is also written to a pipe at once, and from that it is read here.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Final

MOST: Final = 64
"""So many are read at once."""


def heard(wanted: Mapping[signal.Signals, Callable[[], object]]) -> None:
    """Call what is there for each that comes, in a thread; to be called by the main thread."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_hear, args=(reader, wanted), name="signals", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in wanted:
        signal.signal(number, _is_written)


def ignored(numbers: Iterable[signal.Signals]) -> None:
    """Until they are heard: what they do by default ends the process."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _hear(reader: int, wanted: Mapping[signal.Signals, Callable[[], object]]) -> None:
    while True:
        for number in _known(os.read(reader, MOST), wanted):
            wanted[number]()


def _known(
    came: bytes, wanted: Mapping[signal.Signals, Callable[[], object]]
) -> Iterable[signal.Signals]:
    """Others may have handlers for other signals."""
    return (signal.Signals(number) for number in came if number in wanted)


def _is_written(_number: int, _frame: FrameType | None) -> None:
    """It is in the pipe already."""
