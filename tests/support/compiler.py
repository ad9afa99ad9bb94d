"""Compiling C programs against the installed library, as a user does: with pkg-config."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import shmbroker

PREFIX = Path(shmbroker.__file__).parent
NATIVE = Path(__file__).parent / "native"
"""C for tests."""
LIBRARY = PREFIX / "lib" / "libshmbroker.so"


def pkg_config() -> list[str]:
    environment = os.environ | {"PKG_CONFIG_PATH": str(LIBRARY.parent / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", "shmbroker"]
    return shlex.split(subprocess.check_output(command, env=environment, text=True))


def compile_program(source: Path, target: Path) -> Path:
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(target)]
    subprocess.run([*command, *pkg_config()], check=True)
    return target
