"""C programs of perf/native, compiled as a user does it, with pkg-config."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from array import array
from pathlib import Path
from typing import Any

import shmbroker
from shmbroker import perf
from shmbroker.perf.machine.compiler import compiled

_NATIVE = Path(perf.__file__).parent / "native"
_PACKAGE = Path(shmbroker.__file__).parent


def compiled_client(*names: str) -> str:
    """The library made from these files: anew whenever shmbroker.h is another, for what was
    compiled with the structures of an older one would read and write elsewhere."""
    headers = (*sorted(_NATIVE.glob("*.h")), _PACKAGE / "include" / "shmbroker.h")
    sources = [_NATIVE / name for name in names]
    return str(compiled(*sources, flags=_pkg_config(), headers=headers))


def _pkg_config() -> list[str]:
    """What pkg-config says of the library that is installed with this package."""
    environment = os.environ | {"PKG_CONFIG_PATH": str(_PACKAGE / "lib" / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", "shmbroker"]
    return shlex.split(subprocess.check_output(command, env=environment, text=True))


class LoopFailed(Exception):
    """A loop in C ended before it was through; the message has its code."""


class Native:
    """The functions of one file of perf/native."""

    def __init__(self, file: str) -> None:
        self._library = ctypes.CDLL(compiled_client(file))

    def call(self, loop: str, *arguments: Any) -> None:
        """LoopFailed unless it ends well.  Integers are 64 bits wide, arrays go by address."""
        function = getattr(self._library, loop)
        function.restype = ctypes.c_int64
        if (code := function(*map(_in_c, arguments))) < 0:
            raise LoopFailed(f"{loop}: code {code}")


class Loops:
    """The functions of one file of perf/native, with a connection of their own, which is the first
    argument of each."""

    def __init__(self, file: str, vhost: str, spin_seconds: float | None = None) -> None:
        self._native = Native(file)
        self._connection = ctypes.c_void_p()
        self._native.call("ours_connect", vhost.encode(), None, ctypes.byref(self._connection))
        if spin_seconds is not None:
            self.run("sb_spin", int(spin_seconds * 1e9))

    def run(self, loop: str, *arguments: Any) -> None:
        self._native.call(loop, self._connection, *arguments)


def _in_c(argument: Any) -> Any:
    if isinstance(argument, int):
        return ctypes.c_int64(argument)
    if isinstance(argument, float):
        return ctypes.c_double(argument)
    if isinstance(argument, array):
        return ctypes.c_void_p(argument.buffer_info()[0])
    return argument
