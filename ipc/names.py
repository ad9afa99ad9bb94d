"""Names, as C wants them."""

from __future__ import annotations

from shmbroker.ipc.errors import InvalidName


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
