"""Compiling C programs against the installed library, as a user does: with pkg-config."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import shmbroker
from shmbroker.ipc.build import header
from shmbroker.ipc.build.paths import PATHS

PREFIX = Path(shmbroker.__file__).parent
NATIVE = Path(__file__).parent / "native"
"""C for tests."""
LIBRARY = PATHS["library"]


def pkg_config() -> list[str]:
    environment = os.environ | {"PKG_CONFIG_PATH": str(LIBRARY.parent / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", "shmbroker"]
    return shlex.split(subprocess.check_output(command, env=environment, text=True))


def write_internals(folder: Path) -> None:
    """What the C of ipc/ is compiled with, beside shmbroker.h."""
    for name, text in header.sources().items():
        (folder / name).write_text(text)


def compile_program(source: Path, target: Path, internals: bool = False) -> Path:
    """`internals`: it includes shmbroker_private.h, which is not installed."""
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(target)]
    if internals:
        write_internals(target.parent)
        command.append(f"-I{target.parent}")
    subprocess.run([*command, *pkg_config()], check=True)
    return target


def compile_preloaded(text: str, library: Path) -> Path:
    """Of this C, which replaces calls."""
    source = library.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def compile_faults(folder: Path) -> Path:
    """What is preloaded to let calls on files fail."""
    library = folder / "faults.so"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, NATIVE / "faults.c", "-o", library, "-ldl"], check=True)
    return library
