"""Originals of a replicated node: whoever is live is followed.  Replicas there: whoever takes over
follows on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker import ReplicaReadOnly
from shmbroker.ipc.instance import ordering
from shmbroker.perf.machine.port import free_port
from tests.netbridge.queue_replicated.conftest import NAME, PATIENCE, Made, Two, content
from tests.netbridge.replicated.conftest import HERE, Node, nodes
from tests.netbridge.replicated.conftest import Made as NodeMade


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeMade]:
    with nodes(tmp_path / "node", HERE) as made:
        yield made


def test_whoever_takes_over_is_followed_by_difference(two: Made, node: NodeMade) -> None:
    ports = {name: free_port() for name in HERE}
    listening: dict[str, dict[str, object]] = {
        name: {
            "acceptors.copies.uri": f"tcp://127.0.0.1:{port}",
            "acceptors.copies.roles": ["replica"],
            "acceptors.copies.queue-replicas": True,
        }
        for name, port in ports.items()
    }
    members = node(**listening).up()
    original = members.connected("a").declare_queue(NAME, durable=True)
    original.publish_many([bytes(100)] * 1000, timeout=PATIENCE)
    run = two(copy={"credentials.copies.user": "members"})
    run.copy.start().becomes("live")
    service = f"failover:(tcp://127.0.0.1:{ports['a']},tcp://127.0.0.1:{ports['b']})"
    why = run.orders("follow", queue=NAME, of=service, settings={"slots": 1024})
    assert not why, why
    copy = run.connected("copy").queue(NAME)
    run.equal(original, copy)
    original.get().ack()
    original.publish(b"confirmed behind the acknowledgement", timeout=PATIENCE)
    run.equal(original, copy)
    members["a"].kill()
    members["b"].becomes("live")
    original = members.connected("b").queue(NAME)
    original.publish(b"to the member that took over", timeout=PATIENCE)
    run.equal(original, copy)
    run.orders("show")
    assert run.waits("following")["link-bytes"] < 200_000, "by difference"
    assert not (run.copy.folder / "saved").exists()


def follows(members: Node, name: str, run: Two, queue: str, **settings: object) -> str:
    """Why it does not, or nothing."""
    wanted = {"noun": "replicas", "verb": "follow", "user": "test", "queue": queue,
              "of": run.peer, **settings}  # fmt: skip
    answer = ordering.asked(members[name].folder, wanted, PATIENCE)
    assert answer is not None, members.story()
    return str(answer.get("why", ""))


def refuses_what_another_member_would_not_have(members: Node, run: Two) -> None:
    here, there = members.connected("a"), run.connected("original")
    for name in ("in memory", "here alone"):
        there.declare_queue(name).publish(b"x")
    here.declare_queue("in memory").publish(b"its own")
    assert "only a durable queue with replicate 'all'" in follows(members, "a", run, "in memory")
    assert [each[1] for each in content(here.queue("in memory"))] == [b"its own"]
    here.queue("in memory").publish(b"still")
    why = follows(members, "a", run, "here alone", settings={"slots": 64})
    assert "only a durable queue with replicate 'all'" in why
    only_here = {"slots": 64, "durable": True, "replicate": "none"}
    why = follows(members, "a", run, "here alone", settings=only_here)
    assert "only a durable queue with replicate 'all'" in why
    assert "here alone" not in [each.name for each in here.queues()]


def test_whoever_takes_over_follows_on_by_difference(two: Made, node: NodeMade) -> None:
    members = node({"ha.queue-replication": True}).up()
    run = two(original={"credentials.copies.user": "members"})
    run.original.start().becomes("live")
    refuses_what_another_member_would_not_have(members, run)
    there = run.connected("original")
    original = there.declare_queue(NAME, durable=True)
    original.publish_many([bytes(100)] * 1000, timeout=PATIENCE)
    for _ in range(10):
        original.get().ack()
    assert follows(members, "a", run, NAME, settings={"slots": 1024}) == ""
    run.waits("following", at=members["a"])
    run.equal(original, members.connected("a").queue(NAME))
    members["a"].kill()
    original.publish(b"to the member that takes over", timeout=PATIENCE)
    original.get().ack()
    members["b"].becomes("live")
    copy = members.connected("b").queue(NAME)
    run.waits("following", at=members["b"])
    run.equal(original, copy)
    with pytest.raises(ReplicaReadOnly):
        copy.publish(b"x")
    wanted = {"noun": "replicas", "verb": "show", "user": "test"}
    assert ordering.asked(members["b"].folder, wanted, PATIENCE) is not None
    assert run.waits("following", at=members["b"])["link-bytes"] < 20_000, "by difference"
    assert not (members["b"].folder / "saved").exists()
