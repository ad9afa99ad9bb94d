"""The programs of docs/c.md, compiled with the installed header only, and run."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.support.compiler import pkg_config

PAGE = Path(__file__).parents[3] / "docs" / "c.md"
BLOCKS: Final = re.findall(r"^```(c|text)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"]
LANGUAGES = {"cc": ["-std=c11", "-x", "c"], "c++": ["-std=c++17", "-x", "c++"]}


def _file(block: str) -> str:
    """The name that its first line gives it."""
    named = re.match(r"/\* (\w+\.[ch]) \*/\n", block)
    assert named is not None, block
    return named[1]


SOURCES = {_file(text): text for language, text in BLOCKS if language == "c"}
PROGRAMS = {
    _file(text): shown
    for (language, text), (_, shown) in pairwise(BLOCKS)
    if language == "c" and _file(text).endswith(".c")
}
"""And what each prints: the block behind it."""


@pytest.mark.parametrize("compiler", LANGUAGES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_prints_what_the_page_shows(
    tmp_path: Path, vhost: str, program: str, compiler: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip("a C++ compiler is nothing that shmbroker needs")
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    command = [compiler, *STRICT, *LANGUAGES[compiler], str(tmp_path / program), "-x", "none"]
    subprocess.run([*command, "-o", tmp_path / "program", *pkg_config()], check=True)
    shown = subprocess.check_output([tmp_path / "program", vhost], text=True, timeout=120)
    assert shown == PROGRAMS[program]


def test_every_program_is_among_them() -> None:
    assert len(PROGRAMS) == 7
    assert set(SOURCES) - set(PROGRAMS) == {"checked.h"}
