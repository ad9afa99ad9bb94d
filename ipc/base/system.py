"""The system calls that compiled code makes; in C, in ipc/base/system.c.

Declared here as the atomics are in core: bound to C functions of libshmbroker when compiled.
"""

from __future__ import annotations

from typing import NoReturn


def _unbound(name: str) -> NoReturn:
    raise NotImplementedError(f"{name} is not bound: it is a function of libshmbroker")


def system_allocate(file: int, offset: int, length: int) -> int:
    """Put memory behind this part of a file in /dev/shm: OK, NO_MEMORY or SYSTEM."""
    _unbound("system_allocate")


def system_yield() -> int:
    """Let another process have the processor."""
    _unbound("system_yield")


def system_wait(address: int, value: int, timeout_ns: int) -> int:
    """Sleep while the 32-bit word is this value: OK (woken, or it is not), EMPTY (time is over) or
    INTERRUPTED (a signal came)."""
    _unbound("system_wait")


def system_wake(address: int, count: int) -> int:
    """Wake so many of those who sleep on this word: how many there were."""
    _unbound("system_wake")


def system_clock() -> int:
    """Monotonic nanoseconds, which all processes of the host agree on."""
    _unbound("system_clock")


def system_decide(port: int, message: int) -> int:
    """Whether a message that was taken, and is_special, may be delivered: OK; GONE, as it is
    expired, or was delivered too often, and went elsewhere or was set aside."""
    _unbound("system_decide")


def system_revoked(port: int) -> int:
    """What to answer when a message was no longer ours: REVOKED; we may have to leave."""
    _unbound("system_revoked")


def system_recorder(recording: int) -> int:
    """Put a recording in order: its clock, and where it counts.  OK, or nothing is counted."""
    _unbound("system_recorder")


def system_checksum(crc: int, address: int, length: int) -> int:
    """The CRC-32C of what had this one, and of these bytes behind it."""
    _unbound("system_checksum")


SYSTEM: dict[str, int] = {
    "system_allocate": 3,
    "system_yield": 0,
    "system_wait": 3,
    "system_wake": 2,
    "system_clock": 0,
    "system_decide": 2,
    "system_revoked": 1,
    "system_recorder": 1,
    "system_checksum": 3,
}
"""Each function and how many words it takes; all return one."""
