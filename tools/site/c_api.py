"""The reference of C, made from shmbroker.h: its chapters, prototypes, structures and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from shmbroker.ipc.build.paths import PATHS
from tools.site.markdown import fenced, prose

CHAPTER: Final = re.compile(r"^/\* --- (.+?) ---\s*(.*?)\*/$", re.MULTILINE | re.DOTALL)
COMMENT: Final = re.compile(r"/\*(.*?)\*/\s*", re.DOTALL)
FUNCTION: Final = re.compile(r"^\w[\w *]*?[ *](sb_\w+)\(", re.MULTILINE)
STRUCTURE: Final = re.compile(r"struct (sb_\w+) \{")
CALLBACK: Final = re.compile(r"^typedef .*\(\*(sb_\w+)\)", re.MULTILINE)
INTRODUCTION: Final = """\
# C API

`shmbroker.h`, by its chapters. [shmbroker in C](c.md) says how to compile, and has programs. \
[Errors](errors.md) has all codes."""


def pages() -> dict[str, str]:
    return {"c-api.md": of_header((PATHS["include"] / "shmbroker.h").read_text())}


def of_header(text: str) -> str:
    text = text.split("#pragma GCC visibility pop")[0]
    head, *chapters = CHAPTER.split(text)
    said = COMMENT.match(head)
    about = re.sub(r"^ \* ?", "", said[1] if said else "", flags=re.MULTILINE)
    parts = [INTRODUCTION, prose(about.partition("do not edit.")[2])]
    parts += ["## Structures of the library", *opaque(head)]
    for title, more, body in zip(chapters[::3], chapters[1::3], chapters[2::3], strict=True):
        name, _, rest = title.partition(":")
        parts.append(f"## {name[0].upper()}{name[1:]}")
        parts += [prose(sentence(rest)), prose(told(more))]
        parts += list(entries(body))
    return "\n\n".join(each for each in parts if each) + "\n"


def told(comment: str) -> str:
    return re.sub(r"^ ?\* ?", "", comment, flags=re.MULTILINE).strip()


def sentence(words: str) -> str:
    words = words.strip()
    return f"{words[0].upper()}{words[1:]}." if words and not words.startswith("sb_") else words


def opaque(head: str) -> Iterator[str]:
    """Structures of which programs hold the address."""
    rows = ["| type | |", "|---|---|"]
    for comment, name in re.findall(r"^/\* ([^\n]*) \*/\ntypedef struct (sb_\w+) ", head, re.M):
        rows.append(f"| `{name}` | {prose(comment)} |")
    yield "\n".join(rows)


def entries(body: str) -> Iterator[str]:
    """What a chapter declares: comments, and what each is about.

    That ends at a blank line, or at the next comment.  Functions that share a comment share an
    entry.  A comment within a structure belongs to the structure.
    """
    comment = ""
    at = 0
    while (at := after_spaces(body, at)) < len(body):
        if found := COMMENT.match(body, at):
            comment, at = told(found[1]), found.end()
            continue
        end = end_of(body, at)
        if end == at:
            raise ValueError(f"a comment has no end: {body[at : at + 60]}")
        code, at = body[at:end].strip(), end
        if names := names_in(code):
            yield f"### {', '.join(f'`{name}`' for name in names)} {{ #{names[0]} }}"
            yield fenced(code, "c")
            yield prose(comment)
        comment = ""


def after_spaces(body: str, at: int) -> int:
    return len(body) - len(body[at:].lstrip())


def names_in(code: str) -> list[str]:
    """The structures and functions that are declared here."""
    if callback := CALLBACK.search(code):
        return [callback[1]]
    return list(dict.fromkeys([*STRUCTURE.findall(code), *FUNCTION.findall(code)]))


def end_of(body: str, at: int) -> int:
    """Where the declarations that begin here end."""
    depth = 0
    for line in body[at:].splitlines(keepends=True):
        if depth == 0 and (not line.strip() or line.startswith("/*")):
            break
        depth += line.count("{") - line.count("}")
        at += len(line)
    return at
