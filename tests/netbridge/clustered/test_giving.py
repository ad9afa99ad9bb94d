"""What cannot be given away to other nodes is told, also of a queue that has given before."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker import Broker
from shmbroker.ipc.base.errors import ArenaFull, Error
from shmbroker.ipc.queue.moving import Passed
from shmbroker.netbridge.cluster.redistribution import Gives, To
from shmbroker.netbridge.clustered.giving import Bound, Giving
from tests.netbridge.cluster.talk import node_of


def test_a_queue_that_has_given_and_cannot_any_more_is_told_of_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.declare_queue("orders")
    lines: list[dict[str, Any]] = []
    to = To(node_of("west"))
    error: list[Error] = []

    def chosen(*_: object) -> Passed:
        if error:
            raise error[0]
        return Passed(1, False, 1)

    with Giving(broker, "town", lambda line: lines.append(dict(line))) as made:
        monkeypatch.setattr(made, "_chosen", chosen)
        for queue, gone in (("orders", False), ("trades", True)):
            gives = Gives(queue, (to,))
            moved = [made._batch(gives, to, (), Bound(10, 0.0))]
            error[:] = [ArenaFull("no memory")]
            moved += [made._batch(gives, to, (), Bound(10, 0.0)) for _ in range(3)]
            assert moved == ([0] * 4 if gone else [1, 0, 0, 0])
            error.clear()
        assert made.given == {"orders": 1}
    assert [(line["queue"], line["detail"]) for line in lines] == [("orders", "no memory")]
