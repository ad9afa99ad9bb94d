"""Modules that mypyc compiles if SHMBROKER_COMPILED is set: those that decide and have no effects.

Their sources are installed beside what is made of them, and are what is imported if there is
nothing else.  What was made is kept (~/.cache/shmbroker), by a digest of the sources and of all
that they import, because it takes a minute.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Final

GROUP: Final = "shmbroker.netbridge.machines"
"""The library that has the code of all these modules; beside each there is a stub."""

COMPILER: Final = "shmbroker.ipc.build.compiling"


def is_compiled() -> bool:
    """Whoever builds asks for it; it takes mypy 2.4 or later."""
    return bool(os.environ.get("SHMBROKER_COMPILED"))


def install_compiled(root: Path, sources: Iterable[str], target: Path) -> None:
    """Put what is made of these files, as the checker sees them below `root`, into `target`."""
    kept = kept_folder(root, sorted(sources))
    shutil.copytree(kept, target, dirs_exist_ok=True)


def kept_folder(root: Path, sources: list[str]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = cache / "shmbroker" / "build" / f"machines-{_digest(root, sources)}"
    if not kept.exists():
        made = kept.with_suffix(f".{os.getpid()}")
        work = kept.with_suffix(f".{os.getpid()}.work")
        for each in (made, work):
            each.mkdir(parents=True)
        try:
            _compile(root, sources, made, work)
            made.rename(kept)  # whole or not there, whoever else builds at the same time
        except OSError:  # somebody else was faster
            if not kept.exists():
                raise
        finally:
            shutil.rmtree(work)
            shutil.rmtree(made, ignore_errors=True)
    return kept


def _compile(root: Path, sources: list[str], target: Path, work: Path) -> None:
    words = [sys.executable, "-m", COMPILER, GROUP, str(work), str(target), *sources]
    paths = os.pathsep.join([str(root / "src"), *filter(None, sys.path)])
    subprocess.run(words, cwd=root, env=os.environ | {"PYTHONPATH": paths}, check=True)


def _digest(root: Path, sources: list[str]) -> str:
    compiler = Path(__file__).with_name("compiling.py").read_text()
    said = [version("mypy"), str(sysconfig.get_config_var("SOABI")), GROUP, compiler]
    digest = hashlib.sha256("\n".join(said).encode())
    for each in sorted(_with_imports(root, sources)):
        digest.update(str(each).encode() + b"\0" + (root / each).read_bytes())
    return digest.hexdigest()[:24]


def _with_imports(root: Path, sources: list[str]) -> set[Path]:
    """Constants of what they import are in what is made of them."""
    found: set[Path] = set()
    left = [Path(each) for each in sources]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += _imported(root, path)
    return found


def _imported(root: Path, path: Path) -> Iterable[Path]:
    for node in ast.walk(ast.parse((root / path).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shmbroker."):
            folder = Path("src", *(node.module or "").split("."))
            modules = [folder, *(folder / each.name for each in node.names)]
            for each in modules:
                if (root / each).with_suffix(".py").exists():
                    yield each.with_suffix(".py")
