"""A compiled loop that publishes to an exchange, as users have it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import njit

from shmbroker.ipc._native import ffi, lib

PUBLISH = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(
    int(ffi.cast("intptr_t", ffi.addressof(lib, "sb_exchange_publish")))
)
"""As a compiled loop calls it: with addresses."""


@njit  # type: ignore[untyped-decorator]
def published(exchange: int, messages: Any, counts: Any) -> None:
    for each in range(len(messages)):
        done = np.zeros(1, np.int64)
        counts[each] = PUBLISH(exchange, messages[each], 10**10, done.ctypes.data)
