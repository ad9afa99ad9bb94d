"""The C of ipc/ with one snippet replaced, as a library that is preloaded before libshmbroker.

What is not changed is compiled once, and kept in build/ until a header or the source changes.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.support.changed_kernels import changed_kernels
from tests.support.compiler import LIBRARY, PREFIX, write_internals

IPC: Final = Path(__file__).parents[2] / "ipc"
KEPT: Final = IPC.parent / "build" / "objects"
FLAGS: Final = ("-fPIC", "-O0", "-std=gnu11", "-pthread", "-fvisibility=hidden", "-w")


def all_sources() -> list[Path]:
    """But for the extension of Python.  Kernels are in libshmbroker, which is linked."""
    return [source for source in IPC.glob("*/*.c") if source.name != "taken.c"]


class ChangedLibrary:
    """All but one file as it is."""

    def __init__(self, work: Path, sources: Iterable[Path]) -> None:
        self._work = work
        write_internals(work)
        self._seen = _digest_of(*IPC.glob("*/*.h"), *work.glob("*.h"), *PREFIX.glob("include/*.h"))
        self._objects = {source: self._kept(source) for source in sources}
        self._objects[work / "strerror.c"] = self._kept(work / "strerror.c")

    def made(self, name: str, file: str, old: str, new: str, *more: Path) -> Path:
        """The library in which `old`, which stands in the file exactly once, is `new`; with other
        objects, such as kernels that are changed as well."""
        text = (IPC / file).read_text()
        assert text.count(old) == 1, f"{name}: write it anew"
        changed = self._work / f"{name}.c"
        changed.write_text(text.replace(old, new))
        parts = self._objects | {IPC / file: self._compiled(changed, self._work / f"{name}.o")}
        return self.linked(name, *parts.values(), *more)

    def linked(self, name: str, *parts: Path) -> Path:
        library = self._work / f"lib{name}.so"
        link = ["cc", "-shared", "-pthread", "-Wl,--no-undefined", *parts, LIBRARY, "-o", library]
        subprocess.run([*link, f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
        return library

    def kernels(self, name: str, kernel: str, old: str, new: str) -> Path:
        """An object of the kernels of a module, with this in one of them."""
        return changed_kernels(self._work / f"{name}.kernels.o", kernel, old, new)

    def _kept(self, source: Path) -> Path:
        """Of this source, with these headers; others may be making the same."""
        target = KEPT / f"{source.stem}-{_digest_of(source, seen=self._seen)}.o"
        if not target.exists():
            KEPT.mkdir(parents=True, exist_ok=True)
            made = self._compiled(source, target.with_suffix(f".{os.getpid()}"))
            made.rename(target)
        return target

    def _compiled(self, source: Path, target: Path) -> Path:
        folders = [f"-I{self._work}", f"-I{IPC}", f"-I{PREFIX / 'include'}"]
        subprocess.run(["cc", "-c", *FLAGS, *folders, source, "-o", target], check=True)
        return target


def _digest_of(*files: Path, seen: str = "") -> str:
    found = hashlib.sha256(f"{seen} {FLAGS}".encode())
    for each in sorted(files):
        found.update(each.name.encode() + each.read_bytes())
    return found.hexdigest()[:24]
