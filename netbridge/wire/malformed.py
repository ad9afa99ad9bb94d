"""What is no frame."""

from __future__ import annotations

import reprlib

from shmbroker.ipc.base.errors import Error


class Malformed(Error):
    """The bytes from the other end of a link are no frame; the text says what is wrong."""


def shown(value: object) -> str:
    """What came, for an error: the beginning, as it may be lists in lists deeper than repr goes."""
    return f"{reprlib.repr(value):.40}"
