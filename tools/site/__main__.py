"""`python -m tools.site [ROOT]`: the site in ROOT/build/html, after ROOT/zensical.toml."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.site import c_api, command_line, pages, python_api

PAGES: Final = "build/pages"
SITE: Final = "build/html"
BUILD: Final = (str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean")
"""In the folder of zensical.toml."""


def main(root: Path) -> int:
    """Write the pages, and build the site strictly: the exit code."""
    folder = root / PAGES
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pages.copy(folder)
    for name, text in made().items():
        (folder / name).write_text(pages.plain(text))
    return subprocess.run(BUILD, check=False, cwd=root).returncode


def made() -> dict[str, str]:
    """The references, by name of the page."""
    return python_api.pages() | c_api.pages() | command_line.pages()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else pages.ROOT).resolve()))
