"""Orders to a member of a replicated node."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shmbroker.ipc.instance import ordering
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.replicated.instance import ReplicatedInstance


def test_an_order_that_the_system_refuses_is_answered(tmp_path: Path) -> None:
    def order(given: Mapping[str, Any]) -> None:
        raise OSError(errno.EIO, "Input/output error", "a file")

    (tmp_path / RUN).mkdir()
    write_whole(tmp_path / RUN / ordering.ORDER, {"id": 7, "noun": "queue", "verb": "retry"})
    member: Any = ReplicatedInstance.__new__(ReplicatedInstance)
    member._orders = ordering.Orders(tmp_path, Log(tmp_path / "log", "a"))
    member.owner = SimpleNamespace(order=order)
    member._showing = SimpleNamespace(wait=lambda: None)
    member._in_cluster = None
    member._order(member._orders.next())
    answer = read_whole(tmp_path / RUN / ordering.ANSWER)
    assert answer["id"] == 7
    assert answer["why"].startswith("a file: Input/output error")
