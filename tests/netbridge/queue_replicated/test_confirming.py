"""`confirm_replicas`: what is confirmed is there, and who does not answer is not waited for."""

from __future__ import annotations

import pytest

from shmbroker import InvalidArgument, Queue, Unconfirmed
from tests.netbridge.queue_replicated.conftest import NAME, PATIENCE, Made, Two, content

PATIENT: dict[str, object] = {"link-defaults.heartbeat-interval": "60s"}
FOR_EVER = {"ha.replica-timeout": "1h", **PATIENT}


def followed(run: Two, wanted: int = 1) -> tuple[Queue, Queue]:
    there, here = run.up()
    original = there.declare_queue(NAME, durable=True, confirm_replicas=wanted)
    run.follow()
    run.waits("following")
    original.publish(b"first", timeout=PATIENCE)
    copy = here.queue(NAME)
    run.equal(original, copy)
    return original, copy


def bodies(queue: Queue) -> list[bytes]:
    return [each[1] for each in content(queue)]


def test_what_is_confirmed_is_on_the_replica(two: Made) -> None:
    run = two(FOR_EVER, PATIENT)
    original, copy = followed(run)
    for each in range(100):
        original.publish(b"%d" % each, timeout=PATIENCE)
        assert bodies(copy)[-1] == b"%d" % each
    with run.connected("original").transaction() as transaction:
        transaction.queue(NAME).publish(b"whole")
    assert bodies(copy)[-1] == b"whole"


def test_who_stands_still_is_waited_for_until_it_answers(two: Made) -> None:
    run = two(FOR_EVER, PATIENT)
    original, copy = followed(run)
    process = run.copy.process
    assert process is not None
    process.stop()
    try:
        with pytest.raises(Unconfirmed, match="a queue that follows it has not confirmed it"):
            original.publish(b"second", timeout=0.5)
        assert original.confirmed == 1
        assert [each.body for each in original.browse()][-1] == b"second", "consumers do not wait"
        assert original.confirm(level="disk", timeout=PATIENCE) == "disk"
        transaction = run.connected("original").transaction()
        transaction.queue(NAME).publish(b"third")
        with pytest.raises(Unconfirmed):
            transaction.commit(timeout=0.5)
    finally:
        process.go_on()
    original.confirm(timeout=PATIENCE)
    transaction.confirm(timeout=PATIENCE)
    assert bodies(copy) == [b"first", b"second", b"third"]


def test_who_stands_still_costs_no_more_than_the_timeout(two: Made) -> None:
    run = two({**PATIENT, "ha.replica-timeout": "300ms"}, PATIENT)
    original, copy = followed(run)
    process = run.copy.process
    assert process is not None
    process.stop()
    try:
        original.publish(b"second", timeout=PATIENCE)
        original.publish(b"third", timeout=PATIENCE)
    finally:
        process.go_on()
    run.equal(original, copy)
    assert any("confirms do not wait for it" in str(each) for each in run.original.said())


def test_who_is_gone_is_not_waited_for(two: Made) -> None:
    run = two(FOR_EVER, PATIENT)
    original, copy = followed(run, 7)
    run.copy.kill()
    original.publish(b"second", timeout=PATIENCE)
    run.copy.start().becomes("live")
    run.equal(original, copy)
    run.original.kill()
    run.original.start().becomes("live")
    run.copy.kill()
    original.publish(b"the broker that died waited for it", timeout=PATIENCE)


def test_only_a_durable_queue_has_it(two: Made) -> None:
    run = two()
    there, _ = run.up()
    with pytest.raises(InvalidArgument, match="confirm_replicas is for durable queues"):
        there.declare_queue(NAME, confirm_replicas=1)
    with pytest.raises(InvalidArgument, match="confirm_replicas"):
        there.declare_queue(NAME, durable=True, confirm_replicas=8)
