"""Notifying systemd of the start, if it asks for it (Type=notify)."""

from __future__ import annotations

import os
import socket


def ready(status: str) -> None:
    """OSError if nobody can be told; waits as long as the one who asked does not read."""
    if not (path := os.environ.get("NOTIFY_SOCKET")):
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
        to.sendto(f"READY=1\nSTATUS={status}".encode(), address)
