"""The wheel, made of the source distribution: what it says about itself, that it looks for no
library in a builder's folders, and that it works where nothing but Python is."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.plain_root import PlainRoot

ROOT = Path(__file__).parents[3]
SOURCES = ("core", "ipc", "netbridge", "perf", "cli", "src", "setup.py", "pyproject.toml",
           "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE", "docs")  # fmt: skip
LINKER = "cc -shared -Wl,-rpath,/home/builder/lib -Wl,-rpath=/home/builder/lib64"
"""As an interpreter hands it on that was built in a home."""


NEEDED = Path(sys.prefix) / "wheels"
"""What a wheel of ours needs: the Makefile's `.venv/needed`."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: a build leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def pip_wheel(source: Path, made: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    return subprocess.run(
        [*command, "--wheel-dir", made, source],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel_file(sources: Path) -> Path:
    made = sources / "made"
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", made],
        cwd=sources,
        check=True,
    )
    (source,) = made.glob("*.tar.gz")
    done = pip_wheel(source, made, LDSHARED=LINKER)
    assert done.returncode == 0, done.stderr
    (path,) = made.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> Iterator[ZipFile]:
    with ZipFile(wheel_file) as opened:
        yield opened


def metadata(wheel: ZipFile) -> Message:
    (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_no_library_is_looked_for_where_it_was_built(wheel: ZipFile, tmp_path: Path) -> None:
    libraries = [name for name in wheel.namelist() if re.search(r"\.so(\.\d+)?$", name)]
    binaries = [name for name in libraries if wheel.read(name).startswith(b"\x7fELF")]
    assert len([name for name in binaries if "/netbridge/" not in name]) == 5
    for name in binaries:
        listed = subprocess.check_output(
            ["readelf", "-d", wheel.extract(name, tmp_path)], text=True
        )
        paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", listed)
        assert paths in ([], ["$ORIGIN/../lib"]), name
        assert b"/home/builder" not in wheel.read(name), name


def test_it_says_whose_it_is(wheel: ZipFile) -> None:
    said = metadata(wheel)
    assert said["License-Expression"] == "Apache-2.0"
    (text,) = (name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))
    assert wheel.read(text) == (ROOT / "LICENSE").read_bytes()
    assert said["Author"]
    assert len(said.get_all("Project-URL", [])) >= 3
    assert "Operating System :: POSIX :: Linux" in said.get_all("Classifier", [])


def test_it_is_for_all_versions_of_python(wheel_file: Path) -> None:
    if not os.environ.get("SHMBROKER_COMPILED"):
        assert "-cp311-abi3-linux_" in wheel_file.name


def block(page: str, heading: str, language: str) -> str:
    """The first block of a language under a heading."""
    section = (ROOT / page).read_text().partition(f"\n## {heading}\n")[2]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


RATES = re.compile(r"(?<= in )\S+ \S+ [\d,.]+ messages/s, .*")
"""They differ from run to run."""


def test_it_works_where_only_python_is(wheel_file: Path, tmp_path: Path) -> None:
    """The commands of docs/install.md, then README's session and its commands."""
    assert NEEDED.exists(), "the wheels that ours needs are missing: make .venv/needed"
    root = PlainRoot(tmp_path / "root")
    root.add_python()
    shutil.copytree(NEEDED, root.at("/wheels"))
    shutil.copy(wheel_file, root.at("/work"))
    shutil.copy(ROOT / "README.md", root.at("/work"))
    shell = block("README.md", "From the command line", "console")
    asked = [line[2:] for line in shell.splitlines() if line.startswith("$ ")]
    script = f"""
        cd /work
        {block("docs/install.md", "From a wheel", "sh")}
        echo removed: $(shm/bin/shmbroker vhost delete default --yes 2>&1)
        shm/bin/python -m doctest -o IGNORE_EXCEPTION_DETAIL README.md && echo session: as printed
        shm/bin/python -c 'import shmbroker.kernels' 2>error
        while read -r line; do last=$line; done < error
        echo "$last"
        for each in cc gcc make; do command -v $each; done
        PATH=$PWD/shm/bin:$PATH
    """
    for command in asked:
        script += f"echo '$ '{shlex.quote(command)}\n{command}\n"
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_COMPILE": "1", "PIP_FIND_LINKS": "/wheels"}
    done = root.run("/bin/sh", stdin=script, **pip)
    told, _, printed = done.stdout.partition("$ ")
    assert told == (
        "vhost 'default', with room for 256 MiB of messages\n"
        "removed: vhost 'default' is deleted\n"
        "session: as printed\n"
        "ModuleNotFoundError: shmbroker.kernels needs Numba: pip install 'shmbroker[numba]'\n"
    )
    assert RATES.sub("...", f"$ {printed}") == RATES.sub("...", shell)


def test_a_build_says_in_one_line_what_is_missing(sources: Path, tmp_path: Path) -> None:
    done = pip_wheel(sources, tmp_path, CC="no-such-compiler -O2")
    (line,) = (line for line in done.stderr.splitlines() if "shmbroker" in line)
    page = block("docs/install.md", "From source", "text")
    assert line.strip() == page.strip().replace("'cc'", "'no-such-compiler -O2'")
    assert "Traceback" not in done.stderr
    assert "[1 lines of output]" in done.stderr
