"""The system calls that compiled code makes; in C, in native/system.c.

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


SYSTEM: dict[str, int] = {"system_allocate": 3, "system_yield": 0}
"""Each function and how many words it takes; all return one."""
