"""Compiled loops that publish and take, as users have them."""

from __future__ import annotations

from typing import Any

from numba import njit

from shmbroker.kernels import publish, take


@njit  # type: ignore[untyped-decorator]
def publishes(port: int) -> int:
    return publish(port, port, 8)


@njit  # type: ignore[untyped-decorator]
def takes(port: int, message: Any) -> int:
    return take(port, message.ctypes.data)
