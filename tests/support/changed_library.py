"""The C of ipc/ with one snippet replaced, as a library that is preloaded before libshmbroker."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.support.compiler import LIBRARY, PREFIX, write_internals

IPC: Final = Path(__file__).parents[2] / "ipc"
FLAGS: Final = ("-fPIC", "-O0", "-std=gnu11", "-pthread", "-fvisibility=hidden", "-w")


def all_sources() -> list[Path]:
    """But for the extension of Python.  Kernels are in libshmbroker, which is linked."""
    return [source for source in IPC.glob("*/*.c") if source.name != "dropped.c"]


class ChangedLibrary:
    """What is not changed is compiled once."""

    def __init__(self, work: Path, sources: Iterable[Path]) -> None:
        self._work = work
        write_internals(work)
        self._objects = {source: self._compiled(source) for source in sources}
        self._objects[work / "strerror.c"] = self._compiled(work / "strerror.c")

    def made(self, name: str, file: str, old: str, new: str) -> Path:
        """The library in which `old`, which stands in the file exactly once, is `new`."""
        text = (IPC / file).read_text()
        assert text.count(old) == 1, f"{name}: write it anew"
        changed = self._work / f"{name}.c"
        changed.write_text(text.replace(old, new))
        parts = self._objects | {IPC / file: self._compiled(changed)}
        library = self._work / f"lib{name}.so"
        link = ["cc", "-shared", "-pthread", *parts.values(), LIBRARY, "-o", library]
        subprocess.run([*link, f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
        return library

    def _compiled(self, source: Path) -> Path:
        target = self._work / f"{source.parent.name}-{source.stem}.o"
        folders = [f"-I{self._work}", f"-I{IPC}", f"-I{PREFIX / 'include'}"]
        subprocess.run(["cc", "-c", *FLAGS, *folders, source, "-o", target], check=True)
        return target
