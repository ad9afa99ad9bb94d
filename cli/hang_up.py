"""The reader of our output has gone: a command that waits for messages notices it at once."""

from __future__ import annotations

import select
import signal
import sys
import threading
from types import FrameType


def end_at_hang_up() -> None:
    """From now on BrokenPipeError is raised in the main thread when stdout has no reader any more.

    A write would find that out, but a command that waits does not write.  So a thread watches
    stdout and interrupts the wait by a signal.  SIGPIPE stays ignored, as Python has it: a write
    must not raise twice.
    """
    signal.signal(signal.SIGIO, raise_broken_pipe)
    threading.Thread(target=watch, args=(sys.stdout.fileno(),), daemon=True).start()


def raise_broken_pipe(_number: int, _frame: FrameType | None) -> None:
    if sys.exception() is None:  # else a write has found it out already
        raise BrokenPipeError


def watch(output: int) -> None:
    poll = select.poll()
    poll.register(output, 0)  # errors and hang-ups are reported always
    poll.poll()
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGIO)
