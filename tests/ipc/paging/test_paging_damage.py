"""Every damage to a file of a durable queue's pages, then two takeovers or two cold starts.

What is in pages is nowhere else, so it cannot be written anew. `dropped` counts what is missing,
`errors()` says which, and all the rest is delivered in order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ipc.paging.test_paging import eventually, pages
from tests.ipc.paging.test_paging_durable import MANY, Host, declare, missing, number, publish


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_at_its_end(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 10)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def zeroed(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))


def blank(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def foreign(path: Path) -> None:
    path.write_bytes(next(each for each in pages(path.parent.parent) if each != path).read_bytes())


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "cut": cut,
    "cut at its end": cut_at_its_end,
    "emptied": emptied,
    "zeroed": zeroed,
    "blank": blank,
    "flipped": flipped,
    "foreign": foreign,
}


@pytest.mark.parametrize(("cold", "which"), [(False, 3), (True, -1)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_pages_have_lost_is_counted(
    vhost: str, tmp_path: Path, damage: str, cold: bool, which: int
) -> None:
    host = Host(vhost, tmp_path)
    with host.up() as broker:
        publish(declare(broker), 0, MANY)
        eventually(lambda: len(pages(host.pages)) > 4)
    DAMAGES[damage](pages(host.pages)[which])
    for _ in range(2):
        if cold:
            host.dies()
        with host.up() as broker:
            pass
    with host.up() as broker:
        queue = broker.queue("orders")
        bodies: list[bytes] = []

        def is_all() -> bool:
            bodies.extend(message.body for message in queue.consume(timeout=0))
            return len(bodies) + queue.statistics().dropped == MANY

        eventually(is_all)
        expected = [number(each) for each in range(MANY)]
        assert bodies == [each for each in expected if each in set(bodies)], "in order, once"
        assert (len(bodies) < MANY) == bool(missing(broker))
