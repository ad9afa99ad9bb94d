"""Docstrings and comments as Markdown: they are plain English, with names in `code`."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Final

CODE: Final = re.compile(r"(`[^`]*`)")
SIGNS: Final = re.compile(r"([\\*<>\[\]|]|(?<!\w)_|_(?!\w))")
PAGE: Final = re.compile(r"\bdocs/([\w-]+)\.md(#[\w-]+)?")
"""How docstrings name pages."""


def escaped(text: str) -> str:
    """Text in which nothing is a sign of Markdown but `code`; names of pages become links."""
    parts = CODE.split(text)
    parts[::2] = [SIGNS.sub(r"\\\1", each) for each in parts[::2]]
    return "".join(parts)


def prose(text: str | None) -> str:
    """A docstring or a comment, its paragraphs kept."""
    paragraphs = re.split(r"\n\s*\n", cleandoc(text or "").strip())
    return "\n\n".join(_paragraph(each) for each in paragraphs if each)


def _paragraph(text: str) -> str:
    parts = PAGE.split(" ".join(text.split()))
    shown = escaped(parts[0])
    for name, anchor, rest in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        shown += f"[{name}]({name}.md{anchor or ''}){escaped(rest)}"
    return shown


def cell(text: str | None) -> str:
    """The same for a cell of a table."""
    return " ".join(prose(text).split())


def code_cell(text: str) -> str:
    return f"`{text}`".replace("|", r"\|") if text else ""


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"
