"""A call has one time-out, however often its place changes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.ipc.base.errors import Moved
from shmbroker.netbridge.client import near
from shmbroker.netbridge.client.near import Thing

TIMEOUT = 5.0
TAKES = 2.0
"""So long each member has it before it goes."""


class Members:
    """All but the last one go in the middle of each call.  The clock is theirs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, members: int) -> None:
        self.now, self.given = 100.0, list[Any]()
        self._left = members
        self.has_gone = lambda _handle, _error: True
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(near, "time", clock)

    def _has(self, named: dict[str, Any]) -> str:
        self.given.append(named.get("timeout"))
        self._left -= 1
        if self._left == 0:
            return "done"
        self.now += TAKES
        raise Moved("another member serves")

    def sync(self) -> Any:
        verb = lambda **named: self._has(named)  # noqa: E731
        return SimpleNamespace(receive=verb, transaction=verb)

    def asyncio(self) -> Any:
        async def verb(**named: Any) -> str:
            return self._has(named)

        return SimpleNamespace(receive=verb, transaction=verb)


class Thingy(Thing):
    def __init__(self, members: Any, makes: Callable[[], Any]) -> None:
        self._place, self._makes = members, makes

    def _handle(self) -> Any:
        return self._makes()


def calls(members: Members, style: str, verb: str, **named: Any) -> list[Any]:
    """What each member was given."""
    thing = Thingy(members, getattr(members, style))
    answer = getattr(thing, verb)(**named)

    async def main() -> Any:
        return await answer

    assert (asyncio.run(main()) if isawaitable(answer) else answer) == "done"
    return members.given


@pytest.mark.parametrize("style", ["sync", "asyncio"])
@pytest.mark.parametrize("timeout", [TIMEOUT, timedelta(seconds=TIMEOUT)])
def test_each_member_is_given_what_is_left(
    monkeypatch: pytest.MonkeyPatch, style: str, timeout: Any
) -> None:
    members = Members(monkeypatch, 5)
    assert calls(members, style, "receive", timeout=timeout) == [timeout, 3.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("style", ["sync", "asyncio"])
@pytest.mark.parametrize("timeout", [None, 0])
def test_who_waits_for_ever_or_not_at_all_does_so_everywhere(
    monkeypatch: pytest.MonkeyPatch, style: str, timeout: Any
) -> None:
    assert calls(Members(monkeypatch, 3), style, "receive", timeout=timeout) == [timeout] * 3


@pytest.mark.parametrize("style", ["sync", "asyncio"])
def test_the_time_out_of_what_is_done_later_is_whole(
    monkeypatch: pytest.MonkeyPatch, style: str
) -> None:
    members = Members(monkeypatch, 3)
    given = calls(members, style, "transaction", timeout=TIMEOUT)
    assert given == [TIMEOUT] * 3
