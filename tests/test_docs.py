"""The sessions of README and docs/ run as printed; paths and links in all pages lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

PATH = re.compile(r"`((?:core|ipc|cli|perf|src|tests|examples|docs|tools)/[\w./-]*)`")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_sessions_of(page: Path) -> None:
    failed, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert failed == 0


@pytest.mark.parametrize("page", [ARCHITECTURE, *PAGES], ids=lambda page: page.stem)
def test_paths_and_links_exist_in(page: Path) -> None:
    text = page.read_text()
    assert not [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    for path, anchor in LINK.findall(text):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_the_architecture_names_each_room() -> None:
    text = ARCHITECTURE.read_text()
    rooms = {
        f"{path.parent.relative_to(ROOT)}"
        for floor in ("ipc", "perf")
        for path in (ROOT / floor).glob("*/*")
        if path.suffix in {".py", ".c"}
    }
    assert rooms
    assert not [room for room in sorted(rooms) if f"`{room}/`" not in text]


def test_the_map_answers_ten_questions() -> None:
    map_of = ARCHITECTURE.read_text().partition("### Map")[2].partition("\n### ")[0]
    answers = re.findall(r"^\| .*\? \| `([\w./]+)` \|$", map_of, re.MULTILINE)
    assert len(answers) == len(set(answers)) == 10
