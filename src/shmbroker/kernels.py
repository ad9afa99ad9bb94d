"""The verbs of a port for users' own @njit loops, inlined: `from shmbroker.kernels import publish`.

They take the addresses of a port, a message, a buffer: `Port.address`, `array.ctypes.data`.
"""

from __future__ import annotations

from typing import Any

try:
    from shmbroker.ipc.build.jit import functions
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"numba", "llvmlite", "numpy"}:
        raise
    raise ModuleNotFoundError(
        "shmbroker.kernels needs Numba: pip install 'shmbroker[numba]'", name=error.name
    ) from None


def __getattr__(name: str) -> Any:
    try:
        return functions()[name]
    except KeyError:
        raise AttributeError(f"there is no kernel called {name!r}") from None


def __dir__() -> list[str]:
    return sorted(functions())
