"""Compiles a C file of this folder into a shared library, once per source and compiler."""

import hashlib
import os
import subprocess
from pathlib import Path

FLAGS = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Wextra")
_SOURCES = Path(__file__).parent


class CompilerFailed(Exception):
    """No C compiler, or it objects; the message is what it said."""


def compiled(source_name: str) -> Path:
    """The library made from that source; compiled now unless the cache has it."""
    source = _SOURCES / source_name
    compiler = os.environ.get("CC", "gcc")
    told = _told((compiler, "--version")) + "\0".join(FLAGS)
    digest = hashlib.sha256(told.encode() + source.read_bytes()).hexdigest()[:16]
    library = _cache() / f"{source.stem}-{digest}.so"
    if not library.exists():
        fresh = library.with_suffix(f".{os.getpid()}.tmp")
        _told((compiler, *FLAGS, "-o", str(fresh), str(source)))
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
