"""Durable replicas: their broker is killed, its host loses its memory, and they are what they were.

"The host loses its memory" is: the segments of the vhost are removed while no broker runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from shmbroker import Broker, Queue, ReplicaReadOnly
from tests.netbridge.queue_replicated.conftest import LONG, NAME, PATIENCE, Made, Two, content
from tests.support.runs import Run

BEHIND = b"behind an acknowledgement"
"""When a replica shows it, what was acknowledged before is on its disk, and not gone from its
memory alone."""


def forgets(run: Two, which: str) -> None:
    """What is in memory of this broker's host, which does not run."""
    for segment in Path("/dev/shm").glob(f"shmbroker.{run.vhosts[which]}.*"):
        segment.unlink()


def boots(run: Two, which: str = "copy") -> Broker:
    """Its host is cut off, and starts anew."""
    its = {"original": run.original, "copy": run.copy}[which]
    its.kill()
    forgets(run, which)
    its.start().becomes("live")
    return run.connected(which)


def is_durable(queue: Queue) -> bool:
    return bool(queue.explain()["durable"].value)


def bodies(queue: Queue) -> list[bytes]:
    return [each[1] for each in content(queue)]


def followed(run: Two, messages: int = 0, names: Iterable[str] = (NAME,)) -> list[Queue]:
    """The originals."""
    there, _ = run.up()
    made = [there.declare_queue(name, durable=True) for name in names]
    for each in made:
        each.publish_many([b"%d" % number for number in range(messages)], timeout=PATIENCE)
        run.follow(each.name)
        run.waits("following", each.name)
    return made


def test_it_is_there_after_its_host_was_started_anew_and_goes_on_by_difference(two: Made) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME, durable=True)
    original.publish_many([bytes([each % 250]) * 1000 for each in range(1000)], timeout=PATIENCE)
    run.follow()
    run.waits("following")
    for _ in range(10):
        original.get().ack()
    original.publish(BEHIND, timeout=PATIENCE)
    run.equal(original, here.queue(NAME))
    assert is_durable(here.queue(NAME)), "as its original"
    before = content(original)
    run.original.kill()
    copy = boots(run).queue(NAME)
    run.waits("disconnected")
    run.orders("show")  # its first line may be older than its copies
    assert run.waits("disconnected")["position"] == 1001
    assert content(copy) == before
    with pytest.raises(ReplicaReadOnly):
        copy.publish(b"x")
    with pytest.raises(ReplicaReadOnly):
        copy.get(timeout=0)
    run.original.start().becomes("live")
    original = run.connected("original").queue(NAME)
    original.get().ack()
    original.publish(b"while it was away", timeout=PATIENCE)
    run.waits("following")
    run.equal(original, copy)
    run.orders("show")
    assert run.waits("following")["link-bytes"] < 20_000, "by difference"
    assert not (run.copy.folder / "saved").exists()


def test_what_a_program_says_counts_more_than_the_original(two: Made) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue("lasts", durable=True).publish(b"x", timeout=PATIENCE)
    there.declare_queue("does not").publish(b"x")
    run.follow("lasts", durable=False)
    run.follow("does not", durable=True)
    for name, expected in (("lasts", False), ("does not", True)):
        run.waits("following", name)
        assert is_durable(here.queue(name)) == expected
    boots(run)
    here = run.connected("copy")
    assert [each.name for each in here.queues()] == ["does not"]
    run.equal(there.queue("does not"), here.queue("does not"))


def test_a_durable_queue_that_is_there_follows_durably(two: Made) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue(NAME, durable=True).publish(b"original", timeout=PATIENCE)
    here.declare_queue(NAME, durable=True).publish(b"its own", timeout=PATIENCE)
    assert run.replicate() == ""
    run.waits("following")
    here = boots(run)
    assert bodies(here.queue(NAME)) == [b"original"]
    [saved] = (run.copy.folder / "saved").iterdir()
    assert json.loads(saved.read_text())["body"] == "its own"


@LONG
def test_detached_it_keeps_everything_though_the_original_is_dead(two: Made) -> None:
    run = two()
    [original] = followed(run, 20)
    original.get().ack()
    original.publish(BEHIND, timeout=PATIENCE)
    run.equal(original, run.connected("copy").queue(NAME))
    before = content(original)
    run.original.kill()
    boots(run)
    assert run.orders("detach", queue=NAME) == ""
    copy = boots(run).queue(NAME)
    assert content(copy) == before
    assert "follows nothing" in run.orders("detach", queue=NAME)
    copy.get().ack()
    copy.publish(b"new", timeout=PATIENCE)
    after = content(copy)
    assert content(boots(run).queue(NAME))[-len(after) :] == after


@LONG
def test_a_queue_that_was_made_again_never_shows_what_the_former_one_had(two: Made) -> None:
    run = two()
    [original] = followed(run, 20)
    run.equal(original, run.connected("copy").queue(NAME))
    there = run.connected("original")
    run.copy.kill()
    forgets(run, "copy")
    there.delete_queue(NAME, force=True)
    run.copy.start().becomes("live")
    run.waits("source-deleted")
    assert len(content(run.connected("copy").queue(NAME))) == 20
    run.copy.kill()
    forgets(run, "copy")
    original = there.declare_queue(NAME, durable=True)
    original.publish(b"of the new one", timeout=PATIENCE)
    run.copy.start().becomes("live")
    run.waits("following")
    here = run.connected("copy")
    run.equal(original, here.queue(NAME))
    assert bodies(here.queue(NAME)) == [b"of the new one"]
    [saved] = (run.copy.folder / "saved").iterdir()
    assert len(saved.read_text().splitlines()) == 20
    there.delete_queue(NAME, force=True)
    run.waits("source-deleted")
    assert bodies(boots(run).queue(NAME)) == [b"of the new one"]
    run.waits("source-deleted")


def test_a_confirm_waits_for_the_disk_of_a_durable_replica(two: Made) -> None:
    """After each confirm the host of the replica, and the original, are gone."""
    patient: dict[str, object] = {"ha.replica-timeout": "1h"}
    run = two(patient)
    there, _ = run.up()
    original = there.declare_queue(NAME, durable=True, confirm_replicas=1)
    run.follow()
    run.waits("following")
    for each in range(1 if "SHMBROKER_LONG" not in os.environ else 5):
        original.publish(b"%d" % each, timeout=PATIENCE)
        run.copy.kill()
        forgets(run, "copy")
        run.original.kill()
        run.copy.start().becomes("live")
        assert b"%d" % each in bodies(run.connected("copy").queue(NAME))
        run.original.start().becomes("live")
        original = run.connected("original").queue(NAME)
        run.waits("following")


def test_the_backup_of_a_replica_on_another_host_goes_on_following(
    two: Made, tmp_path: Path
) -> None:
    """It has the store, and a memory of its own."""
    from tests.netbridge.queue_replicated.test_shared_store import backup_of

    run = two(copy={"store.path": str(tmp_path / "store")})
    backup, _ = backup_of(run, "copy", tmp_path / "store")
    [original] = followed(run)
    original.publish_many([bytes(1000)] * 100, timeout=PATIENCE)
    original.get().ack()
    backup.start().becomes("passive")
    run.equal(original, run.connected("copy").queue(NAME))
    run.copy.kill()
    backup.kill()
    forgets(run, "copy")
    Run.start(backup).becomes("live")
    original.publish(b"to the backup", timeout=PATIENCE)
    run.waits("following", at=backup)
    run.equal(original, run.connected("copy").queue(NAME))
    run.orders_at(backup, "show")
    assert run.waits("following", at=backup)["link-bytes"] < 20_000, "by difference"
    assert not (backup.folder / "saved").exists()
