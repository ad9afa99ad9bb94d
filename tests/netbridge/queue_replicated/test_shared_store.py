"""Originals, and replicas, of a live whose backup has the same store."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker import ReplicaReadOnly
from shmbroker.perf.machine.port import free_port
from tests.netbridge.queue_replicated.conftest import NAME, PASSWORD, Made, Two
from tests.support.runs import Run


def backup_of(run: Two, which: str, store: Path) -> tuple[Run, int]:
    """And its port."""
    port = free_port()
    given: dict[str, object] = {
        "store.path": str(store),
        "ha.queue-replication": True,
        "link-defaults.heartbeat-interval": "3s",
        "credentials.copies.password": PASSWORD,
        "credentials.copies.role": "replica",
        "acceptors.copies.uri": f"tcp://127.0.0.1:{port}",
        "acceptors.copies.roles": ["replica"],
    }
    made = Run(store.parent / f"backup of {which}", run.vhosts[which], "backup", given)
    run.opened.callback(made.kill)
    return made, port


def test_the_backup_of_an_original_is_followed_when_it_takes_over(
    two: Made, tmp_path: Path
) -> None:
    run = two(original={"store.path": str(tmp_path / "store")})
    backup, port = backup_of(run, "original", tmp_path / "store")
    there, here = run.up()
    backup.start().becomes("passive")
    original = there.declare_queue(NAME, durable=True)
    original.publish_many([bytes(100)] * 1000)
    service = f"failover:(tcp://{run.peer},tcp://127.0.0.1:{port})"
    given = {"queue": NAME, "of": service}
    why = run.orders("follow", **given, settings={"slots": 1024})
    assert not why, why
    run.waits("following")
    copy = here.queue(NAME)
    run.equal(original, copy)
    run.original.kill()
    backup.becomes("live")
    original = run.connected("original").queue(NAME)
    original.publish(b"to the backup")
    original.get().ack()
    run.equal(original, copy)
    assert run.orders("follow", **given) == "", "it follows that service already"
    run.orders("show")
    assert run.waits("following")["link-bytes"] < 200_000, "by difference"
    assert not (run.copy.folder / "saved").exists()


def test_a_backup_that_was_live_and_starts_alone_listens_again(two: Made, tmp_path: Path) -> None:
    """For a moment it is passive, and finds its own address as that of the live."""
    run = two(original={"store.path": str(tmp_path / "store")})
    backup, port = backup_of(run, "original", tmp_path / "store")
    there, here = run.up()
    backup.start().becomes("passive")
    original = there.declare_queue(NAME, durable=True)
    service = f"failover:(tcp://{run.peer},tcp://127.0.0.1:{port})"
    why = run.orders("follow", queue=NAME, of=service, settings={"slots": 1024})
    assert not why, why
    run.original.kill()
    backup.becomes("live")
    run.reaches("backup of original")
    run.waits("following")
    backup.kill()
    run.waits("disconnected")
    backup.start().becomes("live")
    run.waits("following")
    original.publish(b"again")
    run.equal(original, here.queue(NAME))


def test_the_backup_of_a_replica_goes_on_following(two: Made, tmp_path: Path) -> None:
    run = two(copy={"store.path": str(tmp_path / "store")})
    backup, _ = backup_of(run, "copy", tmp_path / "store")
    there, _ = run.up()
    backup.start().becomes("passive")
    original = there.declare_queue(NAME)
    original.publish(b"one")
    run.follow()
    run.waits("following")
    run.copy.kill()
    original.publish(b"two")
    backup.becomes("live")
    run.waits("following", at=backup)
    copy = run.connected("copy").queue(NAME)
    run.equal(original, copy)
    with pytest.raises(ReplicaReadOnly):
        copy.publish(b"x")
