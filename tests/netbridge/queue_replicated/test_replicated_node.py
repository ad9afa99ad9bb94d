"""Originals of a replicated node: whoever is live is followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.instance import ordering
from shmbroker.perf.machine.port import free_port
from tests.netbridge.queue_replicated.conftest import NAME, PATIENCE, Made
from tests.netbridge.replicated.conftest import HERE, nodes
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
    wanted = {"noun": "replicas", "verb": "follow", "user": "test", "queue": "x", "of": run.peer}
    answer = ordering.asked(members["b"].folder, wanted, PATIENCE)
    assert answer is not None
    assert "follow none: a replica of a single queue is not on disk" in str(answer["why"])
