"""The wheel: what it says about itself, and that it looks for no library in a builder's folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ("core", "ipc", "netbridge", "perf", "cli", "src", "setup.py", "pyproject.toml",
           "MANIFEST.in", "README.md", "LICENSE")  # fmt: skip
LINKER = "cc -shared -Wl,-rpath,/home/builder/lib -Wl,-rpath=/home/builder/lib64"
"""As an interpreter hands it on that was built in a home."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """Built from a copy: a build leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, "--wheel-dir", folder / "made", folder],
        env=os.environ | {"LDSHARED": LINKER},
        check=True,
    )
    (path,) = (folder / "made").glob("*.whl")
    with ZipFile(path) as opened:
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
