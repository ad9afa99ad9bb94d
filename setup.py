"""How shmbroker is built: the kernels ahead of time, then the cffi module that is linked to them.

The top-level folders become sub-packages of `shmbroker`, so that nothing called `core` or `cli`
lands in anybody's site-packages.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

# isort: off
from setuptools import Extension, setup
from distutils.command.install_data import install_data  # setuptools brings it

# isort: on

ROOT = Path(__file__).parent
FLOORS = ["core", "ipc", "netbridge", "perf", "cli"]
for floor in FLOORS:
    link = ROOT / "src" / "shmbroker" / floor
    if not link.exists():  # a source distribution holds no links
        link.symlink_to(Path("..", "..", floor))
sys.path.insert(0, str(ROOT / "src"))

from shmbroker.ipc.build import needs  # noqa: E402
from shmbroker.ipc.build.compiled import install_compiled, is_compiled  # noqa: E402
from shmbroker.ipc.build.compiling import PortableBuild  # noqa: E402

if {"dist_info", "bdist_wheel", "build_ext", "editable_wheel"} & set(sys.argv):
    needs.check()  # before pages of what is being done

MANUAL = "share/man/man1"
C_FOLDERS = ["perf/native"]
MACHINES = ["wire", "link", "remote"]
"""Rooms of netbridge whose modules are compiled (ipc/build/compiled.py)."""
INTERPRETED = {"__init__.py", "action.py", "field.py", "frame.py", "value.py", "words.py"}
"""Not these: classes by decorators that mypyc does not know, or with subclasses elsewhere."""


def packages() -> dict[str, str]:
    """Every package and its folder; setuptools wants those without Python to be named as well."""
    found = {"shmbroker": "src/shmbroker"}
    for folder in C_FOLDERS:
        found["shmbroker." + folder.replace("/", ".")] = folder
    for floor in FLOORS:
        for init in sorted((ROOT / floor).rglob("__init__.py")):
            folder = init.parent.relative_to(ROOT)
            found["shmbroker." + ".".join(folder.parts)] = str(folder)
    return found


def machines() -> list[str]:
    """As the type checker sees them."""
    return [
        f"src/shmbroker/netbridge/{room}/{each.name}"
        for room in MACHINES
        for each in (ROOT / "netbridge" / room).glob("*.py")
        if each.name not in INTERPRETED
    ]


class InstallManual(install_data):
    """Makes the manual pages by the package that was just built."""

    def run(self) -> None:
        build = self.get_finalized_command("build")
        pages = Path(build.build_temp).resolve() / "manual"
        shutil.rmtree(pages, ignore_errors=True)
        # what is for another machine does not run: then by the package that is installed here
        runs = needs.machine() == platform.machine()
        path = {"PYTHONPATH": str(Path(build.build_lib).resolve())} if runs else {}
        subprocess.run(
            [sys.executable, "-m", "shmbroker.cli.manual", str(pages)],
            check=True, cwd=build.build_temp,
            env=os.environ | path,
        )  # fmt: skip
        self.data_files = [(MANUAL, sorted(map(str, pages.iterdir())))]
        super().run()


class BuildNative(PortableBuild):
    """Compiles libshmbroker before the extension that is linked to it."""

    def run(self) -> None:
        from shmbroker.ipc.build.library import build

        target = ROOT / "src" if self.inplace else Path(self.build_lib)
        work = Path(self.build_temp) / "libshmbroker"
        version = self.distribution.get_version()
        try:
            library = build(target / "shmbroker", work, needs.machine(), version, needs.compiler())
        except subprocess.CalledProcessError as error:
            sys.exit(f"shmbroker: {needs.compiler()} failed, as it says above ({error.returncode})")
        for extension in self.extensions:
            if "shmbroker" in extension.libraries:  # itself: not every linker reads our script
                extension.libraries.remove("shmbroker")
                extension.extra_objects.append(str(library))
            extension.include_dirs += [str(library.parent.parent / "include"), str(work)]
        super().run()
        if is_compiled() and not self.inplace:
            install_compiled(ROOT, machines(), target)


setup(
    packages=list(packages()),
    package_dir=packages(),
    include_package_data=False,  # C is compiled into the library, and not installed
    package_data={
        "shmbroker": ["py.typed"],
        "shmbroker.perf": ["raw/*.c"],
        "shmbroker.perf.native": ["*.[ch]"],
        "shmbroker.cli.console": ["pages/*"],
    },
    ext_modules=[
        Extension(
            "shmbroker.ipc._taken", ["ipc/message/taken.c"], py_limited_api=True,
            libraries=["shmbroker"], extra_link_args=["-Wl,-rpath,$ORIGIN/../lib"],
        ),
    ],
    cffi_modules=[
        "ipc/build/binding.py:binding",
        "ipc/build/binding.py:quick",
        "perf/spark/binding.py:binding",
    ],
    data_files=[(MANUAL, [])],  # InstallManual has them
    cmdclass={"build_ext": BuildNative, "install_data": InstallManual},
    # what mypyc compiles is for one version of Python; all else is for each from 3.11 on
    options={} if is_compiled() else {"bdist_wheel": {"py_limited_api": "cp311"}},
    zip_safe=False,
)
