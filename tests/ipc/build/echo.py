"""A user's own loop over kernels."""

from __future__ import annotations

import numpy as np
from numba import njit

from shmbroker.ipc.build.jit import KernelCache
from shmbroker.kernels import ack, publish, take, view


@njit  # type: ignore[untyped-decorator]
def echo(producer: int, consumer: int, count: int, body, message) -> int:  # type: ignore[no-untyped-def]
    total = 0
    for number in range(count):
        body[0] = number
        if publish(producer, body.ctypes.data, 8 * body.size) < 0:
            return -1
        if take(consumer, message.ctypes.data) != 0:
            return -2
        total += view(message[2], message[3]).view(np.int64)[0]
        if ack(consumer, message.ctypes.data) != 0:
            return -3
    return total


# compiled anew when a kernel, Numba or the bytecode of this loop has changed
echo._cache = KernelCache(echo.py_func)
