"""C as its sources say it: files, the functions that they define and declare, who names whom.

Read without a compiler, by the house's layout: what is at file scope begins in the first column,
and so does the brace that ends a function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
IPC = ROOT / "ipc"
OF_PYTHON = IPC / "message" / "taken.c"
"""An extension of its own, not part of the library."""

_NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_HEAD = re.compile(r"^(?![#}{/*\s])(?P<head>[^;{}=#]*?\b\w+\([^;{}]*\))\s*", re.MULTILINE)
_DATA = re.compile(r"^extern [^;]*?(\w+)(?:\[[^;]*)?;", re.MULTILINE)
_VARIABLE = re.compile(r"^const \w+ (\w+) = ", re.MULTILINE)
_NAMED = re.compile(r"(->|\.)?\s*\b([A-Za-z_]\w*)\b")
_NOT_FUNCTIONS = {"_Static_assert", "__attribute__"}


@dataclass(frozen=True, slots=True)
class Function:
    """One that is defined: its name, whether other files see it, and the lines that it takes."""

    name: str
    is_static: bool
    line: int
    lines: int


@dataclass(frozen=True, eq=False)
class Source:
    """A file of C."""

    path: Path
    text: str
    code: str
    """Without comments and what is in quotes; as many lines."""

    @property
    def room(self) -> str:
        """The folder that it is in."""
        return self.path.parent.name

    @cached_property
    def included(self) -> list[str]:
        """The headers in quotes."""
        return _INCLUDE.findall(self.text)

    @cached_property
    def named(self) -> set[str]:
        """All identifiers but those of members."""
        return {name for member, name in _NAMED.findall(self.code) if not member}

    @cached_property
    def functions(self) -> list[Function]:
        """What is defined here."""
        return [
            Function(name, is_static, self.line_of(start), self.code[start:end].count("\n") + 1)
            for name, is_static, start, end in self._heads()
            if end
        ]

    @cached_property
    def declared(self) -> set[str]:
        """Functions and variables that are declared here, to be defined in another file."""
        functions = {name for name, is_static, _, end in self._heads() if not end and not is_static}
        return functions | set(_DATA.findall(self.code))

    def line_of(self, at: int) -> int:
        return self.code.count("\n", 0, at) + 1

    def _heads(self) -> Iterator[tuple[str, bool, int, int]]:
        """Name, static, start and end of each function; 0 for one that is only declared."""
        for found in _HEAD.finditer(self.code):
            head = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", found["head"], flags=re.DOTALL)
            name = re.search(r"(\w+)\s*\(", head)
            if not name or name[1] in _NOT_FUNCTIONS or head.startswith("typedef"):
                continue
            end = 0
            if self.code.startswith("{", found.end()):
                end = self.code.index("\n}", found.end()) + 2
            yield name[1], "static " in head, found.start(), end


def _blank(found: re.Match[str]) -> str:
    quote = found[0][0]
    return ('""' if quote in "\"'" else " ") + "\n" * found[0].count("\n")


def read(path: Path) -> Source:
    text = path.read_text()
    # the names of headers stay: they are no text
    code = "\n".join("" if line.startswith("#include") else line for line in text.split("\n"))
    return Source(path, text, _NOISE.sub(_blank, code))


@cache
def sources() -> tuple[Source, ...]:
    """Those of the library."""
    paths = sorted({*IPC.glob("*/*.c"), *IPC.glob("*/*.h")} - {OF_PYTHON})
    return tuple(read(path) for path in paths)


@cache
def definitions() -> dict[str, Source]:
    """Of all functions and variables that more than their file sees: by name, where they are."""
    found: dict[str, Source] = {}
    for source in sources():
        for function in source.functions:
            if not function.is_static or source.path.suffix == ".h":
                found[function.name] = source
        if source.path.suffix == ".c":
            found |= dict.fromkeys(_VARIABLE.findall(source.code), source)
    return found


@cache
def seen_by(source: Source) -> frozenset[str]:
    """The headers that it includes, and what those include."""
    by_name = {str(each.path.relative_to(IPC)): each for each in sources()}
    left, seen = [source], set[str]()
    while left:
        new = {name for name in left.pop().included if name in by_name} - seen
        seen |= new
        left += [by_name[name] for name in new]
    return frozenset(seen)


def called(source: Source) -> Iterator[tuple[str, Source]]:
    """The functions of other files that it names, each with the file that defines it."""
    headers = [each for each in sources() if str(each.path.relative_to(IPC)) in seen_by(source)]
    offered = {name for each in headers for name in each.declared}
    offered |= {function.name for each in headers for function in each.functions}
    for name in source.named:
        defined = definitions().get(name)
        # sb_ is in shmbroker.h, which is made
        if defined and defined is not source and (name in offered or name.startswith("sb_")):
            yield name, defined


def rooms() -> dict[str, set[str]]:
    """Which rooms each room depends on: whose headers it includes, whose functions it names."""
    found: dict[str, set[str]] = {source.room: set() for source in sources()}
    for source in sources():
        on = {name.split("/")[0] for name in source.included if "/" in name}
        on |= {other.room for _, other in called(source)}
        found[source.room] |= on - {source.room}
    return found
