"""What is of one process, and cannot be sent to another."""

from __future__ import annotations

from typing import NoReturn


def refuse_pickle(handle: object) -> NoReturn:
    """As __reduce__."""
    raise TypeError(
        f"{handle!r} belongs to the process that has it, and cannot be pickled: send the queue or "
        "the broker, or the bytes of a message"
    )
