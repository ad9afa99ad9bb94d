"""Another user of this host, and a /dev/shm of one's own: work that a child does."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from pathlib import Path

import shmbroker.connecting  # noqa: F401  # another user may not read it, nor what it imports

OTHER: int = 65534
"""A user who is not the one that runs the tests."""

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


def in_child(work: Callable[[], object], *prepare: Callable[[], object]) -> None:
    """Do it in a child; what goes wrong there is an AssertionError here."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            for each in prepare:
                each()
            work()
        except BaseException:  # noqa: BLE001  # whatever it is, the parent is to see it
            os.write(writing, traceback.format_exc().encode()[-60000:])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    assert not said, said


def become(user: int, *groups: int) -> None:
    os.setgroups(groups)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def as_other(work: Callable[[], object]) -> None:
    in_child(work, lambda: become(OTHER))


def as_user(user: int, *groups: int) -> Callable[[Callable[[], object]], None]:
    """Decorates work that this user does at once, as a member of these groups."""
    return lambda work: in_child(work, lambda: become(user, *groups))


def with_own_shm(size: str) -> Callable[[], None]:
    """Mount another /dev/shm, which nobody else sees and which goes with the child."""

    def mount() -> None:
        _checked(_libc.unshare(CLONE_NEWNS))
        _checked(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        _checked(_libc.mount(b"shm", b"/dev/shm", b"tmpfs", 0, f"size={size},mode=1777".encode()))

    return mount


def _checked(code: int) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def segments(vhost: str) -> list[Path]:
    return sorted(Path("/dev/shm").glob(f"shmbroker.{vhost}.*"))
