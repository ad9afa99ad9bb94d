"""The C library in a system's folders, for programs that do not want Python: `make install`.

It is taken from the package that is installed here, or from a wheel: one for another machine, say.
`make uninstall` removes what `make install` with the same variables has put there.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

from shmbroker.ipc.build.package_config import Folders, package_config
from shmbroker.ipc.build.paths import LIBRARY, PREFIX

DATA: Final = 0o644

Read = Callable[[str], bytes]
"""A file of the package, by its path in it."""


def of_package(name: str) -> bytes:
    return (PREFIX / name).read_bytes()


def of_wheel(path: Path) -> Read:
    def read(name: str) -> bytes:
        with ZipFile(path) as wheel:
            return wheel.read(f"shmbroker/{name}")

    return read


def version(read: Read) -> str:
    found = re.search(rb"^Version: (.*)$", read("lib/pkgconfig/shmbroker.pc"), re.MULTILINE)
    assert found is not None
    return found[1].decode()


def put(target: Path, content: bytes, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}.new")
    made.write_bytes(content)
    made.chmod(mode)
    made.rename(target)  # a program that runs keeps the library that it has mapped


def link(target: Path, name: str) -> None:
    target.unlink(missing_ok=True)
    target.symlink_to(name)


def places(told: Namespace) -> tuple[Path, Path]:
    """Of libraries and headers."""
    return Path(told.destdir + told.libdir), Path(told.destdir + told.includedir)


def uninstall(told: Namespace) -> None:
    """Folders stay: they are the system's."""
    libraries, headers = places(told)
    for each in (
        *sorted(libraries.glob(f"{LIBRARY}*")), libraries / "libshmbroker.so",
        libraries / "pkgconfig" / "shmbroker.pc", headers / "shmbroker.h",
    ):  # fmt: skip
        each.unlink(missing_ok=True)


def install(read: Read, told: Namespace) -> None:
    number = version(read)
    libraries, headers = places(told)
    file = f"{LIBRARY}.{number.partition('.')[2]}"
    put(libraries / file, read(f"lib/{LIBRARY}"), DATA)
    link(libraries / LIBRARY, file)
    link(libraries / "libshmbroker.so", LIBRARY)
    put(headers / "shmbroker.h", read("include/shmbroker.h"), DATA)
    folders = Folders(told.prefix, told.libdir, told.includedir, programs_know_it=False)
    text = package_config(number, folders)
    put(libraries / "pkgconfig" / "shmbroker.pc", text.encode(), DATA)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--destdir", default="", help="stands before all folders, for packagers")
    parser.add_argument("--prefix", default="/usr/local")
    parser.add_argument("--multiarch", default="", help="x86_64-linux-gnu, in Debian's layout")
    parser.add_argument("--libdir", default="", help="PREFIX/lib/MULTIARCH if it is not told")
    parser.add_argument("--includedir", default="", help="PREFIX/include if it is not told")
    parser.add_argument("--wheel", type=Path, help="which has the library, else what is installed")
    parser.add_argument("--uninstall", action="store_true", help="remove what was installed so")
    told = parser.parse_args()
    told.prefix = told.prefix.rstrip("/")
    told.libdir = told.libdir or f"{told.prefix}/lib/{told.multiarch}".rstrip("/")
    told.includedir = told.includedir or f"{told.prefix}/include"
    for name in ("prefix", "libdir", "includedir"):
        if not Path(getattr(told, name) or "/").is_absolute():
            parser.error(f"{name.upper()} is an absolute path, not {getattr(told, name)!r}")
    try:
        if told.uninstall:
            uninstall(told)
        else:
            install(of_wheel(told.wheel) if told.wheel else of_package, told)
    except (OSError, BadZipFile, KeyError) as error:
        sys.exit(f"tools/install.py: {told.wheel or told.prefix}: {error}")


if __name__ == "__main__":
    main()
