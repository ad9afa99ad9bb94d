"""A TCP port that nobody has.

It lies below those that the kernel gives to connections and to who binds port 0: so it stays free
until we bind it, but for somebody who wants just this one.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
FIRST: Final = 10_240
BLOCK: Final = 64
"""A process has so many ports to itself, and then so many more."""
RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Ports:
    """Those that this process gives away, each once: none that another process gives away, too.

    Whoever asked has not bound it yet, so that it is free does not say that nobody else has it.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._claims: list[socket.socket] = []
        self._left: list[int] = []

    def next(self) -> int:
        if self._process != os.getpid():  # what is left is left to who forked this one
            self._process, self._left = os.getpid(), []
        if not self._left:
            self._left = self._block()
        return self._left.pop()

    def _block(self) -> list[int]:
        """A name without a file stands for each block of ports, until the process ends."""
        below = int(RANGE.read_text().split()[0])
        if below <= FIRST + BLOCK:
            raise OSError(f"{RANGE} leaves no ports between {FIRST} and {below}")
        blocks = list(range(FIRST, below - BLOCK, BLOCK))
        random.SystemRandom().shuffle(blocks)  # not the seeded one: processes must not choose alike
        for first in blocks:
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0shmbroker ports from {first}")
            except OSError:
                claim.close()
            else:
                self._claims.append(claim)
                return list(range(first, first + BLOCK))
        raise OSError(f"other processes have all ports between {FIRST} and {below}")


_ports = Ports()


def free_port(*behind: int) -> int:
    """Nobody has those that are so far behind it either."""
    while True:
        port = _ports.next()
        if all(is_free(port + each) for each in (0, *behind)):
            return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
