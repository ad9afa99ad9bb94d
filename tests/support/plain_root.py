"""A root folder that has what is copied into it and nothing else, as a small container image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

IGNORED = shutil.ignore_patterns(
    "__pycache__", "config-3*", "dist-packages", "idlelib", "site-packages", "test", "tests"
)
"""Of Python's own folder: no package, no compiler's settings, and nothing that is merely large."""


OF_GLIBC = ("libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1")
"""What it has beside libc.so.6, for programs that were linked to a former one."""


class PlainRoot:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = "/bin"
        for place in ("dev/shm", "proc", "tmp", "etc", "work"):
            (folder / place).mkdir(parents=True)
        (folder / "dev" / "null").touch()
        (folder / "etc" / "passwd").write_text("root:x:0:0:root:/work:/bin/sh\n")

    def at(self, path: str | Path) -> Path:
        """Where a path inside is, seen from here."""
        return self.folder / str(path).lstrip("/")

    def add(self, source: str | Path, place: str | Path | None = None) -> None:
        """A program or library, at its own place if no other is told, and what it is linked to."""
        self._copy(Path(source), place or source)
        self._copy_linked([str(source)])

    def add_python(self) -> None:
        """This interpreter without any package, as python3, and a shell to start it."""
        standard = sysconfig.get_path("stdlib")
        program = Path(os.path.realpath(sys.executable))
        shutil.copytree(standard, self.at(standard), symlinks=True, ignore=IGNORED)
        if (wheels := Path("/usr/share/python-wheels")).exists():  # of Debian's ensurepip
            shutil.copytree(wheels, self.at(wheels))
        self.add(program)
        self._copy_linked(map(str, Path(standard, "lib-dynload").glob("*.so")))
        if not self.at(python := program.with_name("python3")).exists():
            self.at(python).symlink_to(program.name)
        self.add(os.path.realpath("/bin/sh"), "/bin/sh")
        for library in self.folder.rglob("libc.so.6"):
            place = Path("/", library.relative_to(self.folder)).parent
            for name in OF_GLIBC:
                self.add(place / name)
        self.path = f"{program.parent}:{self.path}"

    def _copy_linked(self, files: Iterable[str]) -> None:
        listed = subprocess.run(["ldd", *files], stdout=subprocess.PIPE, text=True, check=False)
        for path in dict.fromkeys(re.findall(r"(/\S+) \(0x", listed.stdout)):
            self._copy(Path(path), path)

    def _copy(self, source: Path, place: str | Path) -> None:
        target = self.at(place)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def run(
        self, *command: str, stdin: str = "", shares_memory: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """In /, with stdout and stderr as one; `shares_memory`: /dev/shm is that of the host."""
        root = str(self.folder)
        memory = "--bind /dev/shm" if shares_memory else "-t tmpfs tmpfs"
        script = f"""
            mount {memory} {root}/dev/shm
            mount --bind /dev/null {root}/dev/null
            mount --rbind /proc {root}/proc
            exec env -i "$@"
        """
        alone = ["unshare", "--mount" if os.getuid() == 0 else "-rm", "sh", "-ec", script, "sh"]
        told = [f"{name}={value}" for name, value in ({"PATH": self.path} | environment).items()]
        return subprocess.run(
            [*alone, *told, str(shutil.which("chroot")), root, *command],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
