"""The rows of all queues, reckoned as columns: as the command line reckons them one by one."""

from __future__ import annotations

import shmbroker
from shmbroker import Broker
from shmbroker.cli import rates
from shmbroker.cli.console.events import FIRST, _parts
from shmbroker.cli.console.rows import Moment
from shmbroker.cli.console.snapshot import Change
from shmbroker.ipc.queue.writer import without_writer

SAME = ("depth", "slots", "paused", "consumers", "producers", "critical")


def moment(broker: Broker) -> tuple[Moment, rates.Reading]:
    return Moment(broker), rates.read(broker)


def test_they_are_those_of_the_command_line(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        compare(broker)


def compare(broker: Broker) -> None:
    busy = broker.declare_queue("busy", slots=64)
    broker.declare_queue("idle")
    broker.declare_queue("journalled", durable=True)
    full = broker.declare_queue("full", slots=8)
    full.publish_many([b"x"] * 5)
    full.pause()
    with shmbroker.connect(f"shm://{broker.vhost}", observe=True) as looks:
        before = moment(looks)
        busy.publish_many([b"x"] * 7)
        assert busy.receive_many(3) == [b"x"] * 3
        broker.delete_queue("idle", force=True)
        broker.declare_queue("idle", slots=16).publish(b"anew")
        after = moment(looks)
        critical = without_writer(looks)
        rows = after[0].rows(before[0], critical)
        listed = {row["name"]: row for row in rates.rows(before[1], after[1])}
    assert rows.keys() == listed.keys()
    for name, row in rows.items():
        assert {key: row[key] for key in SAME} == {key: listed[name][key] for key in SAME}
    assert [row["name"] for row in rows.values()][:2] == ["journalled", "busy"]
    assert rows["journalled"]["durable"]
    seconds = after[0].at - before[0].at
    assert rows["busy"]["in_per_second"] == round(7 / seconds, 1)
    assert rows["busy"]["out_per_second"] == round(3 / seconds, 1)
    assert rows["idle"]["in_per_second"] == 0  # it is another queue


def test_the_busiest_are_sent_first() -> None:
    rows = [{"name": str(number)} for number in range(FIRST + 10)]
    whole = [each.decode() for each in _parts(Change(1, True, rows, []))]
    assert [each.count('"name"') for each in whole] == [FIRST, 10]
    assert ['"whole": true' in each for each in whole] == [True, False]
    assert ['"more": true' in each for each in whole] == [True, False]
    [none] = _parts(Change(1, True, [], []))
    assert b'"whole": true' in none
    [changed] = _parts(Change(2, False, rows, ["gone"]))
    assert changed.count(b'"name"') == FIRST + 10
    assert b'"gone": ["gone"]' in changed
