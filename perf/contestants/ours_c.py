"""shmbroker from C: perf/native, compiled as a user does it, with pkg-config."""

import ctypes
import os
import shlex
import subprocess
from pathlib import Path

import shmbroker
from shmbroker import perf
from shmbroker.perf.contestant import Contestant
from shmbroker.perf.ours.compiled_peer import CompiledLoop, CompiledPeer, LoopName
from shmbroker.perf.ours.job import Job
from shmbroker.perf.plan import Plan
from shmbroker.perf.raw.compiler import compiled

NATIVE = Path(perf.__file__).parent / "native"
PACKAGE = Path(shmbroker.__file__).parent


class OursC(CompiledPeer):
    name = "shmbroker-c"
    kind = "c"

    def prepare(self, plan: Plan) -> str:
        sources = (NATIVE / "stream.c", NATIVE / "ping_pong.c")
        headers = (*sorted(NATIVE.glob("*.h")), PACKAGE / "include" / "shmbroker.h")
        return str(compiled(*sources, flags=pkg_config(), headers=headers))

    def load(self, name: LoopName, made: str) -> CompiledLoop:
        function = ctypes.CDLL(made)[f"ours_{name}"]
        function.restype = ctypes.c_int64

        def loop(job: Job) -> int:
            return int(function(job.for_c()))

        return loop


def pkg_config() -> list[str]:
    """What pkg-config says of the library that is installed with this package."""
    environment = os.environ | {"PKG_CONFIG_PATH": str(PACKAGE / "lib" / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", "shmbroker"]
    return shlex.split(subprocess.check_output(command, env=environment, text=True))


CONTESTANTS: tuple[Contestant, ...] = (OursC(),)
