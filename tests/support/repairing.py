"""Somebody who repairs what a dead participant has left, or changes the catalog, and takes long."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

F_OFD_SETLKW = 38


@contextmanager
def locked(vhost: str, kind: str, byte: int) -> Iterator[None]:
    with Path(f"/dev/shm/shmbroker.{vhost}.{kind}").open("rb+") as file:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        fcntl.fcntl(file, F_OFD_SETLKW, lock)
        yield


@contextmanager
def in_repair(vhost: str, participant: int) -> Iterator[None]:
    with locked(vhost, "participants", participant):
        yield


@contextmanager
def in_change(vhost: str) -> Iterator[None]:
    with locked(vhost, "catalog", 0):
        yield
