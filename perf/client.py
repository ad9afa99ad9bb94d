"""C programs of perf/native, compiled as a user does it, with pkg-config."""

import os
import shlex
import subprocess
from pathlib import Path

import shmbroker
from shmbroker import perf
from shmbroker.perf.raw.compiler import compiled

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
