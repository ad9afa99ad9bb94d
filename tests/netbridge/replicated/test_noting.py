"""What a member notes in small files of its store, and a disk that does not take them."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any

import pytest

from shmbroker.netbridge.replicated.store import Store
from tests.netbridge.replicated.conftest import Made


def has_no_room_for(mark: str) -> None:
    """In this process: a small file that says so of its store cannot be written."""
    marks = Store.mark

    def refused(store: Store, **changed: Any) -> None:
        if changed.get(mark):
            raise OSError(errno.ENOSPC, "no space left on device")
        marks(store, **changed)

    Store.mark = refused  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("member", "mark"),
    [("a", "node"), ("b", "node"), ("b", "is_whole")],
    ids=["a live", "a backup at its live", "a backup that has copied all"],
)
def test_a_member_that_cannot_write_what_it_is_says_so_and_ends(
    node: Made, member: str, mark: str
) -> None:
    """The network thread ended, and that was all that it said."""
    two = node()
    two[member].before = partial(has_no_room_for, mark)
    two["a"].start()
    if member == "b":
        two["a"].becomes("live")
        two["b"].start()
    assert two[member].ends() == 1
    assert two[member].status.state == "failed"
    assert two[member].why("held").endswith("no space left on device")
    assert "network thread" not in str(two[member].said())
