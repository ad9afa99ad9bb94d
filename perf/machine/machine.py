"""The machine and the software that figures were measured on; figures without it say nothing."""

import hashlib
import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shmbroker.ipc.build.paths import PATHS
from shmbroker.perf.machine.compiler import CompilerFailed, compiler_version

Description = dict[str, object]


def machine(distributions: Iterable[str] = ()) -> Description:
    """Names what the JSON and the head of the table show."""
    return {
        "cpu": _cpu_model(),
        "architecture": platform.machine(),
        "cores": sorted(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "build": _build(),
        "compiler": _compiler(),
        "load_average": os.getloadavg(),
        "versions": {name: _version(name) for name in sorted({"numpy", *distributions})},
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or "unknown"


def _build() -> str:
    """The version, and which library it is: the same source gives the same."""
    library = PATHS["library"]
    digest = hashlib.sha256(library.read_bytes()).hexdigest() if library.exists() else "none"
    return f"{version('shmbroker')} {digest[:12]}"


def _compiler() -> str:
    try:
        return compiler_version()
    except CompilerFailed as failure:
        return str(failure)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
