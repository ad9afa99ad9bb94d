"""A replica that is followed in turn, and rings of them."""

from __future__ import annotations

from shmbroker import Queue
from tests.netbridge.queue_replicated.conftest import NAME, Made, Two, content


def chain(run: Two) -> tuple[Queue, Queue]:
    """The original, and the replica at the end."""
    there, _ = run.up()
    run.last.start().becomes("live")
    original = there.declare_queue(NAME, slots=4096)
    original.publish_many([b"gone", b"before"])
    original.get().ack()
    run.follow(slots=4096)
    run.waits("following")
    why = run.orders_at(
        run.last, "follow", queue=NAME, of=run.peer_of("copy"), settings={"slots": 4096}
    )
    assert not why, why
    run.waits("following", at=run.last)
    return original, run.connected("last").queue(NAME)


def test_a_replica_is_followed_in_turn(two: Made) -> None:
    run = two()
    original, end = chain(run)
    run.equal(original, end)
    original.publish_many([b"%d" % each for each in range(2000)])
    for _ in range(1000):
        original.get().ack()
    run.equal(original, end)
    run.copy.kill()
    original.publish(b"while it was away")
    original.get().ack()
    run.copy.start().becomes("live")
    run.equal(original, end)


def test_it_goes_on_when_the_replica_in_between_is_detached(two: Made) -> None:
    run = two()
    original, end = chain(run)
    run.equal(original, end)
    assert run.orders("detach", queue=NAME) == ""
    between = run.connected("copy").queue(NAME)
    between.publish(b"of its own")
    run.equal(between, end)
    assert [each[1] for each in content(end)] == [b"before", b"of its own"]
    assert run.orders_at(run.original, "follow", queue=NAME, of=run.peer_of("last")) == "", (
        "it is no ring any more"
    )
    run.waits("following", at=run.original)


def test_a_ring_is_refused_and_nothing_is_dropped(two: Made) -> None:
    run = two()
    original, end = chain(run)
    for other, path in (("copy", "copy"), ("last", "last, which follows copy")):
        why = run.orders_at(run.original, "follow", queue=NAME, of=run.peer_of(other))
        assert why == (f"a ring of replicas: 'orders' would follow {path}, which follows original")
    original.publish(b"still")
    run.equal(original, end)
