"""The shape of the Python source: sizes of files and functions, who imports whom, no circles.

Which floor may import which is in tests/test_house.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ("core", "ipc", "netbridge", "perf", "cli")
FOLDERS = (*FLOORS, "src", "tests", "examples", "tools")

FILE_LINES_MAX = 600
LONGER_FILES = {
    "core/layout.py": "a table of structures, fields and their diagrams",
    "ipc/build/header.py": "what C is told of each function: a table in text",
    "tests/explore/scenarios.py": "a table of scenarios",
    "tests/explore/mutants.py": "a table of guards and what they are replaced by",
}

FUNCTION_LINES_MAX = 60
LONGER_FUNCTIONS: dict[str, str] = {}
"""By file and name, and why."""

ALONE = {
    "examples/": "programs that a user starts",
    "perf/peers/": "perf/harness/registry.py imports all that are there",
    "perf/ours/numba_loops.py": "perf/peers/ours_numba.py imports it by name, where Numba is",
    "ipc/build/binding.py": "setup.py names it to cffi",
    "ipc/build/library.py": "setup.py imports it from the source tree",
    "ipc/build/needs.py": "setup.py imports it from the source tree",
    "perf/spark/binding.py": "setup.py names it to cffi",
    "tests/support/selector_noise.py": "a test runs it in a process of its own",
    "tools/install.py": "the Makefile runs it",
    "tools/requirements.py": "the Makefile runs it",
    "tools/wheel.py": "the Makefile runs it",
}
"""Modules, or folders of them, that nobody imports, and who uses them."""


def paths(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            relative = path.relative_to(ROOT)
            if relative.parts[:2] not in {("src", "shmbroker")} or len(relative.parts) == 3:
                yield relative


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def module_of(path: Path) -> str:
    parts = path.with_suffix("").parts
    if parts[0] == "src":
        parts = parts[1:]
    elif parts[0] in FLOORS:
        parts = ("shmbroker", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for each in ast.iter_child_nodes(node):
        if not (isinstance(each, ast.FunctionDef) or is_for_types(each)):
            yield each
            yield from run_at_import(each)


def imported(path: Path, *, everywhere: bool) -> set[str]:
    """The modules, or names in them, that a file imports."""
    found = set()
    for node in ast.walk(tree(path)) if everywhere else run_at_import(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


def test_files_are_short() -> None:
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in paths(*FOLDERS)}
    longer = {path for path, count in lines.items() if count > FILE_LINES_MAX}
    assert longer <= set(LONGER_FILES)


def test_functions_are_short() -> None:
    longer = {}
    for path in paths(*FLOORS, "src"):
        for node in ast.walk(tree(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    longer[f"{path}:{node.name}"] = lines
    assert set(longer) <= set(LONGER_FUNCTIONS), longer


def is_started(path: Path) -> bool:
    """A program, a test, or what pytest loads."""
    name = path.name
    if name in ("__main__.py", "__init__.py", "conftest.py") or name.startswith("test_"):
        return True
    return '__name__ == "__main__"' in (ROOT / path).read_text()


def verb_module(path: Path) -> str:
    """As a LazyGroup names it: metrics.command."""
    return ".".join(path.with_suffix("").parts[1:])


def test_every_module_is_used() -> None:
    used = set()
    for path in paths(*FOLDERS):
        used |= imported(path, everywhere=True) - {module_of(path)}
    texts = [(ROOT / path).read_text() for path in paths(*FOLDERS)]
    alone = {
        str(path)
        for path in paths(*FOLDERS)
        if module_of(path) not in used
        and not is_started(path)
        and not any(f'"{verb_module(path)}:' in text for text in texts)
    }
    alone = {path for path in alone if not path.startswith(tuple(ALONE))}
    assert not alone, "\n".join(sorted(alone))


def test_pytest_looks_into_every_folder(request: pytest.FixtureRequest) -> None:
    """It leaves out some by their names, without a word."""
    names = {part for path in paths("tests") for part in path.parts[:-1]}
    left_out = request.config.getini("norecursedirs")
    assert not {name for name in names for each in left_out if fnmatch(name, each)}


def room_of(module: str) -> str:
    """The folder below ipc that a module lies in."""
    return module.split(".")[2]


def test_rooms_of_ipc_form_no_circle() -> None:
    """Of what is imported when they are; hints and late imports may point back."""
    rooms: dict[str, set[str]] = {}
    for path in paths("ipc"):
        if len(path.parts) > 2:
            room = rooms.setdefault(path.parts[1], set())
            for name in imported(path, everywhere=False):
                parts = name.split(".")
                if parts[:2] == ["shmbroker", "ipc"] and len(parts) > 2:
                    if (ROOT / "ipc" / parts[2]).is_dir() and parts[2] != path.parts[1]:
                        room.add(parts[2])
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        raise AssertionError(f"rooms that import each other: {error.args[1]}") from None
