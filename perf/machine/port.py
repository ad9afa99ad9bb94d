"""A TCP port that nobody has.

It lies below those that the kernel gives to connections and to who binds port 0: so it stays free
until we bind it, but for somebody who wants just this one.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
FIRST = 10_240
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port(*behind: int) -> int:
    """Nobody has those that are so far behind it either."""
    below = int(RANGE.read_text().split()[0])
    if below <= FIRST:
        raise OSError(f"{RANGE} leaves no ports between {FIRST} and {below}")
    chosen = random.SystemRandom()  # not the seeded one: two processes must not choose alike
    while True:
        port = chosen.randrange(FIRST, below - max(behind, default=0))
        if all(is_free(port + each) for each in (0, *behind)):
            return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
