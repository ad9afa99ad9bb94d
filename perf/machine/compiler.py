"""Compiles C files into a shared library, once per sources, flags and compiler."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

FLAGS = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Wextra")
_SOURCES = Path(__file__).parents[1] / "raw"


class CompilerFailed(Exception):
    """No C compiler, or it objects; the message is what it said."""


def compiled(*sources: str | Path, flags: Sequence[str] = (), headers: Sequence[Path] = ()) -> Path:
    """The library made from these sources; compiled now unless the cache has it.

    A mere name is a file of this folder. Flags go behind the sources, as -l must; headers are
    only looked at, to see whether they have changed.
    """
    paths = [_SOURCES / source for source in sources]
    compiler = os.environ.get("CC", "gcc")
    told = "\0".join((_told((compiler, "--version")), *FLAGS, *flags))
    digest = hashlib.sha256(told.encode())
    for path in (*paths, *headers):
        digest.update(path.read_bytes())
    library = _cache() / f"{paths[0].stem}-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        fresh = library.with_suffix(f".{os.getpid()}.tmp")
        _told((compiler, *FLAGS, "-o", str(fresh), *map(str, paths), *flags))
        fresh.replace(library)  # atomic: somebody else may be compiling the same
    return library


def compiler_version() -> str:
    return _told((os.environ.get("CC", "gcc"), "--version")).partition("\n")[0]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "shmbroker" / "perf"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _told(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise CompilerFailed(f"no C compiler {command[0]!r}: install gcc or set CC") from None
    except subprocess.CalledProcessError as failure:
        raise CompilerFailed(failure.stderr) from None
    return done.stdout
