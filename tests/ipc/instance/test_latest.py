"""What is written for people: the last of each thing, and nobody waits for the disk."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from shmbroker.ipc.instance import latest
from shmbroker.ipc.instance.latest import Latest
from tests.support.host import PATIENCE


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Latest]:
    """By itself it would write when no test waits any more."""
    monkeypatch.setattr(latest, "LATER_SECONDS", 10 * PATIENCE)
    with Latest("writes") as made:
        yield made


def test_the_last_of_each_thing_is_written(writes: Latest) -> None:
    written: list[str] = []
    for state in ("asking", "beginning", "live"):
        writes.say("status", lambda state=state: written.append(state))  # type: ignore[misc]
    writes.say("links", lambda: written.append("links"))
    writes.wait()
    assert written == ["live", "links"]


def test_what_cannot_be_written_is_left_out(writes: Latest) -> None:
    written: list[str] = []

    def is_full() -> None:
        raise OSError("no room")

    writes.say("status", is_full)
    writes.say("links", lambda: written.append("links"))
    writes.wait()
    assert written == ["links"]


def test_what_was_said_is_written_before_it_is_closed(writes: Latest) -> None:
    written: list[str] = []
    writes.say("status", lambda: written.append("stopped"))
    writes.close()
    assert written == ["stopped"]


def test_it_is_written_though_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "LATER_SECONDS", 0.001)
    is_written = Event()
    with Latest("writes") as made:
        made.say("status", is_written.set)
        assert is_written.wait(PATIENCE)
