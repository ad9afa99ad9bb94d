"""Whoever moves messages is killed with -9: each message is in one of both queues, once."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from tests.support.killed import victims

MESSAGES = 300


def back_and_forth(broker: Broker) -> None:
    one, two = broker.queue("one"), broker.queue("two")
    one.move_to(two, limit=70)
    two.move_to(one, limit=50)


@pytest.mark.parametrize("last_value", [False, True])
def test_none_is_lost_and_none_is_there_twice(url: str, tmp_path: Path, last_value: bool) -> None:
    with shmbroker.connect(url) as broker:
        one = broker.declare_queue("one", slots=512, max_deliveries=None)
        two = broker.declare_queue("two", slots=512, max_deliveries=None, last_value=last_value)
        for number in range(MESSAGES):
            one.publish(b"%d" % number, key=str(number))
        moved = 0
        for _, process in victims(url, tmp_path, back_and_forth, seed=5):
            process.kill()
            broker.repair()
            found = [int(each.body) for queue in (one, two) for each in queue.browse()]
            assert sorted(found) == list(range(MESSAGES))
            moved += two.statistics().depth
        assert moved > MESSAGES, "they had no time to do anything"
