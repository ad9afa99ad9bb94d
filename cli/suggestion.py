"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from shmbroker.ipc.base.errors import NotFound

SUGGESTIONS = 3


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A question with similar names; empty if there are none."""
    from difflib import get_close_matches

    close = get_close_matches(wrong, list(known), n=SUGGESTIONS)
    if not close:
        return ""
    return "Did you mean " + " or ".join(repr(name) for name in close) + "?"


@contextmanager
def suggesting(
    kind: str, wanted: str, known: Callable[[], Iterable[str]], remedy: str
) -> Iterator[None]:
    """Add similar names to NotFound, or the command that creates the object."""
    try:
        yield
    except NotFound:
        meant = did_you_mean(wanted, known()) or f"To make it: {remedy}"
        raise NotFound(f"there is no {kind} {wanted!r}. {meant}") from None
