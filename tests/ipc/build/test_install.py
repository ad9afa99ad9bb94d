"""The C library in a system's folders (`make install`): what is where, what programs need."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import shmbroker
from shmbroker.ipc.build.paths import LIBRARY
from tests.ipc.build.test_c_page import PROGRAMS, SOURCES
from tests.support.compiler import LIBRARY as BUILT
from tests.support.plain_root import PlainRoot

INSTALL = Path(__file__).parents[3] / "tools" / "install.py"
MULTIARCH = "x86_64-linux-gnu"
VERSIONS = """
#include <shmbroker.h>
int main(void) { return sb_version() != SB_VERSION; }
"""


def install(*options: str) -> None:
    subprocess.run([sys.executable, INSTALL, *options], check=True)


def pkg_config(folder: Path, *asked: str, root: str = "/") -> list[str]:
    environment = {"PKG_CONFIG_LIBDIR": str(folder), "PKG_CONFIG_SYSROOT_DIR": root}
    command = ["pkg-config", *asked, "shmbroker"]
    return shlex.split(subprocess.check_output(command, env=os.environ | environment, text=True))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> PlainRoot:
    """The library, the programs of docs/c.md, and what they are linked to."""
    folder = tmp_path_factory.mktemp("installed")
    made = PlainRoot(folder / "root")
    install("--destdir", str(made.folder), "--prefix", "/usr", "--multiarch", MULTIARCH)
    libraries = made.at(f"/usr/lib/{MULTIARCH}")
    flags = pkg_config(libraries / "pkgconfig", "--cflags", "--libs", root=str(made.folder))
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    for name in PROGRAMS:
        program = folder / name.removesuffix(".c")
        subprocess.run(["cc", "-pthread", folder / name, "-o", program, *flags], check=True)
        made.add(program, f"/bin/{program.name}")
    return made


def test_it_has_links_for_the_loader_and_the_linker(root: PlainRoot) -> None:
    libraries = root.at(f"/usr/lib/{MULTIARCH}")
    assert (libraries / "libshmbroker.so").readlink() == Path(LIBRARY)
    (file,) = libraries.glob(f"{LIBRARY}.*")
    assert (libraries / LIBRARY).readlink() == Path(file.name)
    assert file.read_bytes() == BUILT.read_bytes()
    assert not file.stat().st_mode & 0o111
    assert root.at("/usr/include/shmbroker.h").exists()


def test_pkg_config_names_the_folders_and_compiles_no_path_in(root: PlainRoot) -> None:
    folder = root.at(f"/usr/lib/{MULTIARCH}/pkgconfig")
    told = pkg_config(folder, "--cflags", "--libs", "--keep-system-cflags")
    assert "-lshmbroker" in told
    assert not [flag for flag in told if "rpath" in flag or str(root.folder) in flag]
    assert pkg_config(folder, "--variable=libdir") == [f"/usr/lib/{MULTIARCH}"]
    assert pkg_config(folder, "--modversion") == [shmbroker.__version__]


def test_the_programs_of_the_page_work_where_nothing_else_is(root: PlainRoot) -> None:
    assert not [path for path in root.folder.rglob("*") if "python" in path.name]
    for name, shown in PROGRAMS.items():
        done = root.run(f"/bin/{name.removesuffix('.c')}", "alone")
        assert (done.stdout, done.returncode) == (shown, 0), name


def test_one_works_with_a_broker_outside(root: PlainRoot, broker: shmbroker.Broker) -> None:
    orders = broker.declare_queue("orders", slots=1024)
    done = root.run("/bin/orders", broker.vhost, shares_memory=True)
    assert (done.stdout, done.returncode) == (PROGRAMS["orders.c"], 0)
    assert orders.statistics().acked == 1


def test_a_folder_of_ones_own_has_it_for_a_prefix(tmp_path: Path) -> None:
    own = tmp_path / "own"
    install("--prefix", str(own), "--includedir", str(tmp_path / "headers"))
    told = pkg_config(own / "lib" / "pkgconfig", "--cflags", "--libs")
    assert told[:2] == [f"-I{tmp_path}/headers", f"-L{own}/lib"]


def test_folders_may_have_blanks_and_are_left_as_they_were(tmp_path: Path) -> None:
    own = tmp_path / "my own"
    install("--prefix", str(own))
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text(VERSIONS)
    flags = pkg_config(own / "lib" / "pkgconfig", "--cflags", "--libs")
    subprocess.run(["cc", tmp_path / "program.c", "-o", program, *flags], check=True)
    told = {"LD_LIBRARY_PATH": str(own / "lib")}
    assert subprocess.run([program], env=told, check=False).returncode == 0
    (own / "lib" / "libother.so").touch()
    install("--prefix", str(own), "--uninstall")
    assert [path for path in own.rglob("*") if not path.is_dir()] == [own / "lib" / "libother.so"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--prefix", "usr"], "PREFIX is an absolute path, not 'usr'"),
        (["--libdir", "lib"], "LIBDIR is an absolute path, not 'lib'"),
        (["--wheel", "no.whl"], "tools/install.py: no.whl: [Errno 2] No such file or directory"),
        (["--wheel", __file__], f"tools/install.py: {__file__}: File is not a zip file"),
        (["--prefix", "/proc/none"], "tools/install.py: /proc/none: [Errno 2] No such file"),
    ],
)
def test_what_cannot_be_installed_is_said_in_one_line(options: list[str], said: str) -> None:
    command = [sys.executable, INSTALL, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr.splitlines()[-1]


def test_a_wheel_for_another_machine_has_it_too(tmp_path: Path) -> None:
    config = "Name: shmbroker\nVersion: 7.8.9\n"
    with ZipFile(tmp_path / "shmbroker.whl", "w") as wheel:
        wheel.writestr(f"shmbroker/lib/{LIBRARY}", "the library")
        wheel.writestr("shmbroker/lib/pkgconfig/shmbroker.pc", config)
        wheel.writestr("shmbroker/include/shmbroker.h", "the header")
    for _ in range(2):  # over what is there
        install("--prefix", str(tmp_path / "own"), "--wheel", str(tmp_path / "shmbroker.whl"))
    libraries = tmp_path / "own" / "lib"
    assert (libraries / "libshmbroker.so").resolve() == libraries / f"{LIBRARY}.8.9"
    assert (libraries / LIBRARY).read_text() == "the library"
    assert re.search("^Version: 7.8.9$", (libraries / "pkgconfig/shmbroker.pc").read_text(), re.M)
