"""The pages of the repository as the site has them: names, links and Markdown are adapted.

GitHub shows the pages where they lie; the site has all of them in one folder.  What a page links
outside the pages (a test, an example) is copied as a text, so that the site needs nothing else.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
OUTSIDE: Final = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "overview.md",
    "docs": "index.md",
}
"""Pages that are not in docs/, and their names in the site."""
MADE: Final = (
    "python-api.md", "asyncio-api.md", "kernels-api.md", "c-api.md", "command-line.md",
)  # fmt: skip
"""Pages that only the site has: they are made from the code."""
SOURCE: Final = "source"
FENCE: Final = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
COMMENT: Final = re.compile(r"^<!--.*-->\n", re.MULTILINE)
NESTED: Final = re.compile(r"^ {2,3}(?=(?:[*-]|\d+\.) )", re.MULTILINE)
ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
CODE: Final = re.compile(r"`[^`\n]+`")
SESSION: Final = re.compile(r"\A```python\n(?=>>> )")


class DeadLink(Exception):
    """A page names a file that is not there."""


def copy(folder: Path) -> None:
    """Write all pages, and the files that they link, into this folder."""
    for name in sorted({each.name for each in pages()} | OUTSIDE.keys() - {"docs"}):
        page = ROOT / (name if name in OUTSIDE else f"docs/{name}")
        text, linked = adapted(page)
        (folder / OUTSIDE.get(name, name)).write_text(text)
        for path in linked:
            target = folder / SOURCE / f"{path}.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((ROOT / path).read_text())
    for drawing in sorted((ROOT / "docs").glob("*.svg")):
        (folder / drawing.name).write_bytes(drawing.read_bytes())


def pages() -> Iterator[Path]:
    yield from sorted((ROOT / "docs").glob("*.md"))


def adapted(page: Path) -> tuple[str, list[str]]:
    """The page as the site has it, and the files outside the pages that it links."""
    linked: list[str] = []
    parts = FENCE.split(page.read_text())
    for index, part in enumerate(parts):
        if part.startswith("```"):
            parts[index] = SESSION.sub("```pycon\n", part)
        else:
            shown = plain(NESTED.sub("    ", COMMENT.sub("\n", part)))
            parts[index] = LINK.sub(lambda found: _link(page, found, linked), shown)
    return "".join(parts), linked


def plain(text: str) -> str:
    """Tables: GitHub wants `\\|` also within code; here that would be shown as it is."""

    def of_row(row: re.Match[str]) -> str:
        return CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])

    return ROW.sub(of_row, text)


def _link(page: Path, found: re.Match[str], linked: list[str]) -> str:
    """Where the link leads in the site; relative to the root of the repository it has one name."""
    folder = page.parent.relative_to(ROOT).as_posix()
    path = posixpath.normpath(posixpath.join(folder, found[1]))
    anchor = found[2] or ""
    if path in OUTSIDE:
        return f"]({OUTSIDE[path]}{anchor})"
    if path.startswith("docs/"):  # a page, or one that is made: the build sees whether it is there
        return f"]({path.removeprefix('docs/')}{anchor})"
    if not (ROOT / path).is_file():
        raise DeadLink(f"{page.relative_to(ROOT)} links {found[1]}, which is not there")
    linked.append(path)
    return f"]({SOURCE}/{path}.txt)"
