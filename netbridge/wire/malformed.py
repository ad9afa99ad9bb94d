"""What is no frame."""

from __future__ import annotations

from shmbroker.ipc.base.errors import Error


class Malformed(Error):
    """The bytes from the other end of a link are no frame; the text says what is wrong."""
