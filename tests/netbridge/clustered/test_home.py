"""What was for a node that has left, and finds no room where it is to go."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker import Broker
from shmbroker.core import codes
from shmbroker.ipc.base.errors import ArenaFull
from shmbroker.netbridge.clustered import home
from shmbroker.netbridge.clustered.home import Home


def test_what_cannot_be_set_aside_is_told_and_not_tried_without_a_pause(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its thread would run in a circle, and say nothing."""
    queue, here = broker.declare_queue("ways"), SimpleNamespace(_is_closed=threading.Event())
    at = SimpleNamespace(sb_reject_at=lambda *_: codes.ARENA_FULL)
    monkeypatch.setattr(home, "lib", at)
    monkeypatch.setattr(home, "position_in", lambda records: 1)
    nobody: Any = None
    with pytest.raises(ArenaFull, match="'ways'"):
        Home._refused(here, queue, memoryview(b"record"), nobody)  # type: ignore[arg-type]
    here._is_closed.set()
    at.sb_reject_at = lambda *_: codes.FULL
    left = Home._refused(here, queue, memoryview(b"record"), nobody)  # type: ignore[arg-type]
    assert left == b"record", "it is closed: the next one reads it again"
