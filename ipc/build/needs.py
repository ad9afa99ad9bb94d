"""What building from source needs and is not there: setup.py says it in one line.

A wheel needs none of it.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

MACHINES: Final = ("x86_64", "aarch64")
BUILDERS: Final = ("numba", "cffi", "click", "click_man", "msgpack")
"""Packages of pyproject.toml's build-system: pip installs them, unless it is told not to."""
PROGRAM: Final = "#include <stdlib.h>\nint main(void) { return 0; }\n"


def compiler() -> str:
    """The C compiler and its arguments."""
    return os.environ.get("CC", "cc")


def machine() -> str:
    """For which it is built; tools/wheel.py builds for others than this one."""
    return sysconfig.get_platform().rpartition("-")[2]


def _compiles() -> bool:
    with TemporaryDirectory() as folder:
        source = Path(folder, "program.c")
        source.write_text(PROGRAM)
        command = [*shlex.split(compiler()), str(source), "-o", str(source.with_suffix(""))]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def missing() -> list[str]:
    """Each thing, and the package of Debian that has it."""
    found = []
    if sys.platform != "linux" or machine() not in MACHINES:
        found.append(f"Linux on {' or '.join(MACHINES)}: this is {platform.system()} {machine()}")
    command = shlex.split(compiler())
    if not command or shutil.which(command[0]) is None:
        found.append(f"a C compiler: there is no '{compiler()}' (Debian: gcc)")
    elif not _compiles():
        found.append(f"what '{compiler()}' compiles programs with (Debian: libc6-dev)")
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        found.append(f"Python.h of Python {platform.python_version()} (Debian: python3-dev)")
    packages = [name.replace("_", "-") for name in BUILDERS if find_spec(name) is None]
    if packages:
        found.append(f"the Python packages {', '.join(packages)} (--no-build-isolation is told)")
    return found


def check() -> None:
    """Leave with one line if something is missing."""
    if found := missing():
        sys.exit(
            f"shmbroker cannot be built from source, for want of {'; '.join(found)}. "
            "A wheel needs no compiler: see docs/install.md."
        )
