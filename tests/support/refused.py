"""What has to raise, in programs that run for a moment: pytest, which can say it, takes a quarter
of a second to import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refused(error: type[Exception], match: str = "") -> Iterator[None]:
    """Like `pytest.raises`."""
    said = None
    try:
        yield
    except error as raised:
        said = str(raised)
    assert said is not None, f"no {error.__name__} was raised"
    assert re.search(match, said), f"{match!r} is not in {said!r}"
