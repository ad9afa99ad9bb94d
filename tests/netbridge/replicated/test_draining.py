"""A member that has given all away, and cannot note it."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shmbroker import Broker
from shmbroker.ipc.instance.leaving import Left
from shmbroker.netbridge.replicated import draining
from shmbroker.netbridge.replicated.draining import Draining


class Departure:
    def __init__(self, *_: object, drains: bool) -> None: ...

    def run(self, *_: object) -> Left:
        return Left(is_whole=True)

    def stop(self) -> None: ...


def test_what_cannot_be_noted_is_not_whole(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody would hear that it has ended, and the member would drain for ever."""
    monkeypatch.setattr(draining, "Departure", Departure)
    gave: list[bool] = []
    lines: list[Any] = []

    def hears(is_whole: bool) -> None:
        gave.append(is_whole)
        if is_whole:
            raise OSError(errno.ENOSPC, "No space left on device")

    no: Any = None
    config = cast(Any, SimpleNamespace(vhost="here"))
    Draining(config, "town", no, no, lines.append, broker, hears).end()
    assert gave == [True, False]
    assert [each["event"] for each in lines] == ["not scaled down"]
