"""Patterns of names: words between dots, of which `*` is one word and `#` any number of them."""

from __future__ import annotations

from typing import Final

ONE: Final = "*"
MANY: Final = "#"


def matches(pattern: str, name: str) -> bool:
    """Takes as many steps as words times words, whatever the pattern."""
    words = name.split(".")
    reached = {0}
    """How many words may be behind us."""
    for wanted in pattern.split("."):
        if wanted == MANY:
            reached = set(range(min(reached, default=len(words) + 1), len(words) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(words) and wanted in (ONE, words[at])}
    return len(words) in reached
