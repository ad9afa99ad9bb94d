"""What the brokers of a pair say to each other, without a link."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from shmbroker.netbridge.pair.codec import Said, encode
from shmbroker.netbridge.pair.told import Activation, State, Told
from shmbroker.netbridge.paired.talks import Talks
from shmbroker.netbridge.wire.frame import Talk

TOLD = Told(State.PENDING, Activation(1, 1))


class Hearing:
    def linked(self) -> None: ...

    def told(self, what: Told) -> None: ...


def test_two_backups_are_told_once_however_often_they_connect() -> None:
    lines = list[Mapping[str, Any]]()
    refused = list[str]()
    talks = Talks(Hearing(), lines.append, is_primary=False)

    def connects(*, is_primary: bool) -> None:
        machine = SimpleNamespace(refuse=lambda _, why, now: refused.append(why))
        end: Any = SimpleNamespace(machine=machine, does=lambda _: None)
        talks.came(end)
        talks.heard(end, Talk(encode(Said(is_primary, TOLD))))

    for _ in range(3):
        connects(is_primary=False)
    assert (len(refused), len(lines)) == (3, 1)
    connects(is_primary=True)
    connects(is_primary=False)
    assert (len(refused), len(lines)) == (4, 2)
