"""What pages quote exists: texts of errors, log events, commands and options, settings and keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from shmbroker.cli.main import root
from shmbroker.ipc.build.paths import PATHS
from shmbroker.netbridge.config.config import ALL

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
COMING_FROM = sorted(DOCS.glob("from-*.md"))
PAGES = [DOCS / "troubleshooting.md", DOCS / "coming-from.md", *COMING_FROM]

CELLS = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"`([^`]+)`")
C_TEXT = re.compile(r'"((?:\\.|[^"\\\n])*)"')
SENTENCE_WORDS = 4
"""A quotation of so many words is the text of an error."""


def cells(page: Path, column: int) -> Iterator[str]:
    """Of a column of all its tables, without heads."""
    for line in page.read_text().splitlines():
        row = CELLS.split(line)
        if line.startswith("| ") and len(row) > column + 2:
            yield row[column + 1]


@cache
def texts() -> str:
    """All texts of the code; … is what is put in when it runs."""
    found: list[str] = []
    for floor in ("core", "ipc", "netbridge", "cli", "src/shmbroker"):
        for path in (ROOT / floor).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
                elif isinstance(node, ast.JoinedStr):
                    found.append(
                        "".join(
                            str(each.value) if isinstance(each, ast.Constant) else "…"
                            for each in node.values
                        )
                    )
        for path in (ROOT / floor).rglob("*.[ch]"):
            joined = re.sub(r'"\s*\n\s*"', "", path.read_text())
            found += [re.sub(r"%[.*\d]*[a-z]+", "…", text) for text in C_TEXT.findall(joined)]
    found += [path.read_text() for path in (ROOT / "tools").iterdir() if path.is_file()]
    return "\n".join(found)


def is_there(quoted: str) -> bool:
    """Each piece between names and numbers."""
    pieces = [each.strip() for each in re.split("…|'…'", quoted)]
    return all(each in texts() for each in pieces if each)


def test_troubleshooting_quotes_texts_of_the_code() -> None:
    quoted = [code for cell in cells(DOCS / "troubleshooting.md", 0) for code in CODE.findall(cell)]
    assert len([each for each in quoted if len(each.split()) >= SENTENCE_WORDS]) > 40
    assert not [each for each in quoted if not is_there(each)]


def commands(text: str) -> Iterator[str]:
    """What is called of shmbroker in code."""
    for code in CODE.findall(text):
        if code.startswith("shmbroker ") and "…" not in code:
            yield code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_exist(page: Path) -> None:
    wrong = [each for each in commands(page.read_text()) if not exists(each.split()[1:])]
    assert not wrong


def exists(words: list[str]) -> bool:
    """The verb and its options."""
    ctx = click.Context(root, info_name="shmbroker")
    command: click.Command | None = root
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        command = command.get_command(ctx, words.pop(0))
        if command is None:
            return False
        ctx = click.Context(command, parent=ctx)
    options = {name for each in command.params for name in each.opts} if command else set()
    return all(word in options for word in words if word.startswith("--"))


OPTIONS = {each.key for each in ALL}
TABLES = {each.table for each in ALL}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_and_keys_of_the_configuration_exist(page: Path) -> None:
    codes = CODE.findall(page.read_text())
    tables = {each[1:-1] for each in codes if re.fullmatch(r"\[[\w.-]+\]", each)}
    assert tables <= TABLES | {"ha"}, tables - TABLES
    dotted = {each for each in codes if re.fullmatch(r"(?:ha|store|sql|instance)\.[\w.-]+", each)}
    assert dotted <= OPTIONS, dotted - OPTIONS


@pytest.mark.parametrize("page", COMING_FROM, ids=lambda page: page.stem)
def test_settings_exist(page: Path) -> None:
    """Names with an underscore, in what is here: settings, functions, methods and arguments."""
    paths = [*(ROOT / "ipc").rglob("*.py"), *(ROOT / "src/shmbroker").rglob("*.py")]
    sources = "\n".join(path.read_text() for path in [*paths, PATHS["include"] / "shmbroker.h"])
    here = {
        name
        for cell in cells(page, 1)
        for code in CODE.findall(cell)
        for name in re.findall(r"[a-z]+(?:_[a-z]+)+", code)
    }
    assert here
    assert not [name for name in here if not re.search(rf"\b{name}\b", sources)]
