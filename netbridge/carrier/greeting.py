"""Whether somebody who speaks ZeroMQ listens at an address.

A proxy, or the port of a container, accepts connections also while the broker behind it is away,
and closes them.  A broker that has another key does the same, but it greets first: each end of
ZeroMQ sends its signature before it has heard anything.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Final

SIGNATURE: Final = b"\xff"
"""How that of ZMTP begins."""


def greets(host: str, port: int, seconds: float) -> bool:
    """Waits as long as that to connect, and again to be greeted."""
    with suppress(OSError), socket.create_connection((host, port), seconds) as there:
        return there.recv(1) == SIGNATURE
    return False
