"""The documents as a site: built strictly, all pages in its navigation, nothing fetched elsewhere.

It is built once, in a folder of its own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

import shmbroker
from shmbroker.cli.main import root as commands
from shmbroker.ipc.build.paths import PATHS
from tools.site.__main__ import BUILD, PAGES, SITE
from tools.site.command_line import commands_below
from tools.site.pages import MADE

ROOT = Path(__file__).parents[2]
CONFIGURATION = "zensical.toml"
TARGET = re.compile(r'<a\b[^>]*?\bhref="?([^" >]+)')
FETCHED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="?(https?:[^" >]+)')
ID = re.compile(r'\bid="?([^" >]+)')
ELSEWHERE = ("http:", "https:", "mailto:", "javascript:")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site that was built."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / CONFIGURATION, folder)
    done = build(folder)
    assert done.returncode == 0, done.stdout
    return folder


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.site", str(folder)],
        cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def named(nav: object) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for each in nav.values():
            yield from named(each)
    elif isinstance(nav, list):
        for each in nav:
            yield from named(each)


def test_each_page_is_in_the_navigation_once(site: Path) -> None:
    nav = list(named(tomllib.loads((site / CONFIGURATION).read_text())["project"]["nav"]))
    pages = {page.name for page in (site / PAGES).glob("*.md")}
    assert set(nav) == pages
    assert len(nav) == len(pages)


def test_links_and_anchors_lead_somewhere(site: Path) -> None:
    """In the HTML, so also those that the builder does not look at."""
    folder = site / SITE
    texts = {page.name: page.read_text() for page in folder.glob("*.html")}
    ids = {name: set(ID.findall(text)) for name, text in texts.items()}
    dead = []
    for name, text in texts.items():
        if name == "404.html":  # its links are of the root of a server
            continue
        for target in TARGET.findall(text):
            path, _, anchor = unquote(target).partition("#")
            if target.startswith(ELSEWHERE):
                continue
            page = path.removeprefix("./") or name
            if not (folder / page).exists() or anchor not in ids.get(page, {anchor}) | {""}:
                dead.append(f"{name}: {target}")
    assert not dead


def test_nothing_is_fetched_from_other_servers(site: Path) -> None:
    for page in (site / SITE).glob("*.html"):
        assert not FETCHED.findall(page.read_text()), page.name
    for style in (site / SITE).rglob("*.css"):
        assert "url(http" not in style.read_text(), style.name


def test_lists_and_tables_are_read_as_such(site: Path) -> None:
    """GitHub takes a table behind a line of text; Markdown of the site wants an empty line."""
    for page in (site / SITE).glob("*.html"):
        assert not re.search(r"<p>(?:[^<]*\n)?(?:\||\* |- )", page.read_text()), page.name


def test_references_have_all_names(site: Path) -> None:
    texts = {name: (site / PAGES / name).read_text() for name in MADE}
    for name in shmbroker.__all__:
        if name not in ("__version__", "aio", "vhost"):
            assert f"`{name}`" in texts["python-api.md"], name
    header = re.sub(r"/\*.*?\*/", "", (PATHS["include"] / "shmbroker.h").read_text(), flags=re.S)
    headings = "\n".join(re.findall(r"^### .*", texts["c-api.md"], re.MULTILINE))
    for name in re.findall(r"^\w[\w *]*?[ *](sb_\w+)\(", header, re.MULTILINE):
        assert f"`{name}`" in headings, name
    sections = set(re.findall(r"^##+ `(.*)` {", texts["command-line.md"], re.MULTILINE))
    assert sections == {each.command_path for each in commands_below(commands, "shmbroker")}


def test_a_dead_anchor_ends_the_build(site: Path, tmp_path: Path) -> None:
    """Shown by two pages instead of all: the builder is the same."""
    text = (site / CONFIGURATION).read_text()
    text = re.sub(r"^nav = \[.*?^\]\n", "", text, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / CONFIGURATION).write_text(text)
    (tmp_path / PAGES).mkdir(parents=True)
    for target, code in (("other.md#here", 0), ("other.md#there", 1), ("gone.md", 1)):
        (tmp_path / PAGES / "index.md").write_text(f"# One\n\n[other]({target})\n")
        (tmp_path / PAGES / "other.md").write_text("# Two\n\n## Here\n")
        done = subprocess.run(BUILD, cwd=tmp_path, check=False, capture_output=True)
        assert done.returncode == code, target
