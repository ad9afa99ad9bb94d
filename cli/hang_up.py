"""The reader of our output has gone: a command that waits for messages notices it at once."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_by_hang_up() -> Iterator[None]:
    """Raise BrokenPipeError in the main thread, within, when stdout has no reader any more.

    A write would find that out, but a command that waits does not write.  So a thread watches
    stdout and interrupts the wait by a signal.  SIGPIPE stays ignored, as Python has it: a write
    must not raise twice.
    """
    former = signal.signal(signal.SIGIO, raise_broken_pipe)
    is_over = os.eventfd(0, os.EFD_CLOEXEC)
    watcher = threading.Thread(target=watch, args=(sys.stdout.fileno(), is_over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        os.eventfd_write(is_over, 1)
        watcher.join()
        os.close(is_over)
        signal.signal(signal.SIGIO, former)


def raise_broken_pipe(_number: int, _frame: FrameType | None) -> None:
    if sys.exception() is None:  # else a write has found it out already
        raise BrokenPipeError


def watch(output: int, is_over: int) -> None:
    poll = select.poll()
    poll.register(output, 0)  # errors and hang-ups are reported always
    poll.register(is_over, select.POLLIN)
    if (is_over, select.POLLIN) not in poll.poll():
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGIO)
