"""The table of events has each event that the code writes, and no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from shmbroker.cli.log_events import PARTS, renewed
from shmbroker.ipc.instance.machine import State
from shmbroker.netbridge.member.action import Alert
from shmbroker.netbridge.replicated.aside import DIVERGED

ROOT = Path(__file__).parents[2]
ELSEWHERE = {DIVERGED, *(each.value for each in (*State, *Alert))}
"""Events that are no text where they are written."""


def written() -> Iterator[str]:
    """The first argument of `log.write` and `line`, and what a line has as its `event`."""
    for floor in ("ipc", "netbridge", "cli"):
        for path in sorted((ROOT / floor).rglob("*.py")):
            if "simulation" in path.parts or path.name == "log_events.py":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Dict):
                    for key, value in zip(node.keys, node.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value == "event":
                            yield from constants(value)
                elif isinstance(node, ast.Call) and node.args and writes(node.func):
                    yield from constants(node.args[0])


def writes(function: ast.expr) -> bool:
    said = ast.unparse(function)
    return said.endswith(("log.write", ".line", "self._write", "self._append"))


def constants(node: ast.expr) -> Iterator[str]:
    """Both branches of a conditional."""
    if isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_each_event_is_in_the_table_and_is_written() -> None:
    named = [each.name for part in PARTS.values() for each in part]
    assert len(named) == len(set(named))
    assert set(named) == {*written(), *ELSEWHERE}


def test_the_page_is_as_the_table_has_it() -> None:
    text = (ROOT / "docs" / "log-events.md").read_text()
    assert text == renewed(text), "run python -m shmbroker.cli.log_events"
