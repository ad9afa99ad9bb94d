"""A second process of a benchmark, forked from it."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ChildFailed(Exception):
    """It ended badly; why is in its standard error."""


@contextmanager
def child(work: Callable[[], object]) -> Iterator[None]:
    """It works while the block runs, and is waited for: so the block must not wait for it without
    an end."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            work()
            code = 0
        except KeyboardInterrupt:
            pass  # the parent has it as well, and tells
        except BaseException:  # noqa: BLE001  # nothing of the parent's may run in here
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)
    try:
        yield
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status:
        raise ChildFailed(f"the other process of this benchmark ended with {status}")
