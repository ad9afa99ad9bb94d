"""How C is built: rooms without circles, short lines, functions and files, headers that are used.

Sources are read, nothing is compiled (c_source.py).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.structure.c_source import (
    IPC,
    OF_PYTHON,
    ROOT,
    Source,
    called,
    definitions,
    read,
    rooms,
    sources,
)

COLUMNS = 100
FUNCTION_LINES = 60
FILE_LINES = 600
FOLDERS = ("ipc", "perf", "tests", "examples")
LOOKS_LIKE_C = re.compile(
    r"#include |#define |^\s*(?:static|typedef|int64_t|return)\b.*[;{]$", re.M
)
BEGINS = re.compile(r"\b(pthread_create|thrd_create|clone3?|v?fork)\(")
SYNC_POINT = re.compile(r"SYNC POINT: ([\w-]+)")


def files_of_c() -> list[Source]:
    """All of them, also of tests and of the harness."""
    return [
        read(path)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.[ch]"))
        if "build" not in path.parts
    ]


def texts_of_c(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a Python file that are C in a string."""
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "\n" in node.value
            and LOOKS_LIKE_C.search(node.value)
        ):
            end = node.end_lineno or node.lineno
            yield from enumerate(lines[node.lineno - 1 : end], start=node.lineno)


# --- rooms ----------------------------------------------------------------------------------------


def test_rooms_form_no_circle() -> None:
    """What is below asks what is above only by the table of duties (ipc/vhost/vhost.h)."""
    try:
        order = list(TopologicalSorter(rooms()).static_order())
    except CycleError as circle:
        between = circle.args[1]
        said = [
            f"{source.path.relative_to(IPC)} names {name} of {other.room}"
            for source in sources()
            for name, other in called(source)
            if other.room in between and source.room in between and other.room != source.room
        ]
        pytest.fail(f"{' -> '.join(between)}: " + "; ".join(said))
    assert order[0] == "base"
    assert {"vhost", "ring", "queue", "journal", "paging", "broker"} <= set(order)


def test_the_header_of_each_room_says_what_it_is() -> None:
    for room in rooms():
        header = IPC / room / f"{room}.h"
        declares = any(each.path.suffix == ".h" for each in sources() if each.room == room)
        assert header.exists() == declares, f"{room} has a header, which is {room}.h"
        if header.exists():
            said = header.read_text().split("*/")[0]
            assert said.startswith("/*"), f"{header}: what is it?"
            assert said.count(".") >= 2, f"{header}: what is it, and what does it stand on?"


# --- how long things are --------------------------------------------------------------------------


def test_lines_end_at_column_100() -> None:
    long = [
        f"{source.path.relative_to(ROOT)}:{number}"
        for source in files_of_c()
        for number, line in enumerate(source.text.splitlines(), start=1)
        if len(line) > COLUMNS
    ]
    assert not long


def test_lines_of_c_in_python_end_at_column_100() -> None:
    paths = [*(IPC / "build").glob("*.py"), *(ROOT / "tests").rglob("*.py")]
    found = {path: list(texts_of_c(path)) for path in sorted(paths)}
    assert sum(map(bool, found.values())) > 5, "C in strings is not found any more"
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path, lines in found.items()
        for number, line in lines
        if len(line) > COLUMNS
    ]
    assert not long


def test_functions_fit_on_a_page() -> None:
    functions = [(source, each) for source in sources() for each in source.functions]
    assert len(functions) > 1000
    long = [
        f"{source.path.relative_to(IPC)}: {each.name} has {each.lines} lines"
        for source, each in functions
        if each.lines > FUNCTION_LINES
    ]
    assert not long


def test_files_hold_one_noun() -> None:
    long = [
        f"{source.path.relative_to(IPC)} has {lines} lines"
        for source in sources()
        if (lines := source.text.count("\n")) > FILE_LINES
    ]
    assert not long


# --- what is declared -----------------------------------------------------------------------------


def test_headers_are_included() -> None:
    included = {name for source in sources() for name in source.included}
    headers = {str(each.path.relative_to(IPC)) for each in sources() if each.path.suffix == ".h"}
    assert headers <= included, f"nobody includes {sorted(headers - included)}"
    made = {"settings_table.h", "shmbroker_private.h", "within.h"}
    assert included - headers == made


def test_declarations_are_used_by_other_files() -> None:
    """Also by a header itself, in an inline function."""
    unused = []
    for header in sources():
        if header.path.suffix != ".h":
            continue
        for name in sorted(header.declared):
            defined = definitions().get(name)
            assert defined, f"{header.path.relative_to(IPC)} declares {name}, which is nowhere"
            others = [each for each in sources() if each not in (header, defined)]
            if len(re.findall(rf"\b{name}\b", header.code)) == 1 and not any(
                name in each.named for each in others
            ):
                unused.append(f"{header.path.relative_to(IPC)}: {name}")
    assert not unused, "make them static"


def test_declarations_stand_below_the_name_of_their_file() -> None:
    for header in sources():
        if header.path.suffix != ".h":
            continue
        sections = re.split(r"^/\* --- ([\w./]+\.c)\b.*\*/$", header.text, flags=re.MULTILINE)
        for name, section in zip(sections[1::2], sections[2::2], strict=True):
            file = header.path.parent / Path(name).name
            assert file.exists(), f"{header.path.relative_to(IPC)}: there is no {name}"
            for declared in sorted(Source(header.path, section, section).declared):
                defined = definitions().get(declared)
                if defined and re.search(rf"^[^*\n]*\b{declared}\(", section, re.MULTILINE):
                    assert defined.path == file, f"{declared} is of {defined.path}, not {name}"


def test_what_is_seen_by_other_files_is_declared() -> None:
    declared = {name for source in sources() for name in source.declared}
    loose = [
        f"{source.path.relative_to(IPC)}: {function.name}"
        for source in sources()
        for function in source.functions
        if source.path.suffix == ".c"
        and not function.is_static
        and not function.name.startswith("sb_")
        and function.name not in declared
    ]
    assert not loose, "make them static"


# --- threads --------------------------------------------------------------------------------------


def test_both_sides_of_every_sync_point_are_marked() -> None:
    """A name of C may have its other side in core/, and the other way round."""
    kernels = [path.read_text() for path in (ROOT / "core").glob("*.py")]
    texts = [source.text for source in sources()]
    marks = Counter(name for text in [*kernels, *texts] for name in SYNC_POINT.findall(text))
    in_c = {name for text in texts for name in SYNC_POINT.findall(text)}
    assert not [name for name in sorted(in_c) if marks[name] < 2]


def test_threads_get_no_signals() -> None:
    """thread.c starts them, for all; the exit helper is no thread, and blocks them itself."""
    starts = {
        (str(source.path.relative_to(IPC)), call)
        for source in [*sources(), read(OF_PYTHON)]
        for call in BEGINS.findall(source.code)
    }
    assert starts == {("base/thread.c", "pthread_create"), ("repair/exit_helper.c", "clone")}
    assert "signals_block" in (IPC / "repair" / "exit_helper.c").read_text()
