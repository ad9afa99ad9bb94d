"""A confirm that comes after its command was answered answers nothing a second time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Unconfirmed
from shmbroker.core.codes import OK, UNCONFIRMED
from shmbroker.netbridge.serving.alarms import Alarms
from shmbroker.netbridge.serving.confirms import in_time
from shmbroker.netbridge.serving.served import Served
from tests.support.host import journaling
from tests.support.serving import Site

PATIENCE = 60.0


@pytest.mark.parametrize("late", [False, True])
def test_the_first_of_confirm_and_alarm_is_told(late: bool) -> None:
    alarms, told = Alarms(), list[int]()
    hear = in_time(alarms, 5.0, told.append)
    if late:
        alarms.ring(5.0)
    hear(OK)
    hear(OK)
    alarms.ring(9.0)
    assert told == [UNCONFIRMED if late else OK]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often each command was answered."""
    counted: Counter[int] = Counter()
    done = Served.done

    def counting(self: Served, command: Any, *told: Any, **more: Any) -> None:
        counted[command.number] += 1
        done(self, command, *told, **more)

    monkeypatch.setattr(Served, "done", counting)
    return counted


def publishes(broker: Broker) -> None:
    broker.queue("q").publish(b"1", timeout=0.05)


def schedules(broker: Broker) -> None:
    broker.queue("q").publish(b"1", deliver_after=3600, timeout=0.05)


def commits(broker: Broker) -> None:
    with broker.transaction(timeout=0.05) as transaction:
        transaction.publish(broker.queue("q"), b"1")


def confirms(broker: Broker) -> None:
    queue = broker.queue("q")
    queue.publish(b"1", confirm="shm")
    queue.confirm(timeout=0.05)


@pytest.mark.parametrize("verb", [publishes, schedules, commits, confirms])
def test_each_command_is_answered_once(
    served: Site, tmp_path: Path, answers: Counter[int], verb: Any
) -> None:
    served.broker.declare_queue("q", durable=True)
    uri = f"tcp://127.0.0.1:{served.port}"
    with shmbroker.connect(uri, user="site", password="correct horse battery") as broker:
        with pytest.raises(Unconfirmed, match="disk"):  # as in shared memory: it says what lacks
            verb(broker)
        with journaling(served.broker.vhost, tmp_path / "journal"):
            queue = broker.queue("q")
            queue.publish(b"2", timeout=PATIENCE)  # whoever waits is told in order
            queue.publish(b"3", deliver_after=3600, timeout=PATIENCE)
    assert set(answers.values()) == {1}
