"""python -m shmbroker.ipc.build.compiling GROUP WORK TARGET SOURCE...: what mypyc makes of modules.

A process of its own: mypyc changes setuptools.
"""

from __future__ import annotations

import sys
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext

OPTIMIZED = "1"
"""-O2 takes longer to build, and little of the time is spent in code that it would make faster."""


class PortableBuild(build_ext):
    def build_extensions(self) -> None:
        """Without the folders of this machine, in which a user's library must not be looked for."""
        # the interpreter hands on how it was linked itself: pyenv's with a folder in a home
        ours = [flag for flag in self.compiler.linker_so if not flag.startswith("-Wl,-rpath")]
        self.compiler.linker_so = ours
        super().build_extensions()


def main(group: str, work: str, target: str, *sources: str) -> None:
    from mypyc.build import mypycify

    made: Any = mypycify(
        [*sources], opt_level=OPTIMIZED, debug_level="0", target_dir=work, group_name=group
    )
    setup(
        name="machines",
        ext_modules=made,
        packages=[],
        py_modules=[],
        cmdclass={"build_ext": PortableBuild},
        script_args=["--quiet", "build_ext", "--build-lib", target, "--build-temp", work],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
