"""Names as C takes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import InvalidName

OWN: Final = "$"
"""How the names of the broker's own queues and exchanges begin."""


def path_bytes(path: str | Path) -> bytes:
    """The name of a file or folder for C: any bytes, as the system has them."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise InvalidName(
            f"the path {str(path)!r} cannot be the name of a file: {error}"
        ) from error
    if b"\0" in encoded:
        raise InvalidName(f"the path {str(path)!r} contains a zero character")
    return encoded


def name_bytes(name: str) -> bytes:
    """A name for C; that it is a good one is checked there."""
    if not isinstance(name, str):
        raise InvalidName(f"a name is text, not {type(name).__name__}")
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        raise InvalidName(f"the name {name!r} cannot be written as UTF-8: {error}") from error
    if b"\0" in encoded:
        raise InvalidName(f"the name {name!r} contains a zero character")
    return encoded
