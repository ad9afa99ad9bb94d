"""What somebody probably meant who named something that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from shmbroker.ipc.base.errors import NotFound

SUGGESTIONS = 3


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A question, or nothing if no name is near."""
    from difflib import get_close_matches

    close = get_close_matches(wrong, list(known), n=SUGGESTIONS)
    if not close:
        return ""
    return "Did you mean " + " or ".join(repr(name) for name in close) + "?"


@contextmanager
def suggesting(
    kind: str, wanted: str, known: Callable[[], Iterable[str]], remedy: str
) -> Iterator[None]:
    """Whoever finds nothing is asked what was meant, or told how to make it."""
    try:
        yield
    except NotFound:
        meant = did_you_mean(wanted, known()) or f"To make it: {remedy}"
        raise NotFound(f"there is no {kind} {wanted!r}. {meant}") from None
