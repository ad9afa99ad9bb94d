"""A queue of one broker that follows a queue of another one, with real processes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count, pairwise
from threading import Event
from typing import Any

import pytest

import shmbroker
from shmbroker import NotFound, ReplicaReadOnly
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.perf.machine.port import free_port
from tests.netbridge.queue_replicated.conftest import NAME, PASSWORD, PATIENCE, Made, content


def test_what_is_there_and_what_comes_arrives_and_goes(two: Made) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME)
    original.publish_many([b"gone", b"before", b"too"])
    original.get().ack()
    run.follow()
    run.waits("following")
    copy = here.queue(NAME)
    run.equal(original, copy)
    original.publish(b"after", key="k", priority=7, properties={"n": 1})
    held = original.get()
    run.equal(original, copy)
    assert len(content(copy)) == 3, "what is taken stays until it is acknowledged"
    held.ack()
    run.equal(original, copy)
    assert len(content(copy)) == 2
    with pytest.raises(ReplicaReadOnly):
        copy.publish(b"x")
    with pytest.raises(ReplicaReadOnly):
        copy.get(timeout=5)


def test_it_follows_by_a_password_that_is_changed_at_both(two: Made) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME)
    run.follow()
    run.waits("following")
    for each in (run.original, run.copy):
        file = each.folder / FILE
        file.write_text(file.read_text().replace(PASSWORD, "a newer password"))
        answer = reloading.asked(each.folder, PATIENCE)
        assert answer is not None
        assert answer["applied"] == ["credentials.copies.password"]
    original.publish(b"by the new one")
    run.equal(original, here.queue(NAME))


def test_a_queue_that_is_there_shows_what_the_original_has(two: Made) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME)
    original.publish(b"original")
    here.declare_queue(NAME).publish(b"its own")
    here.queue(NAME).publish(b"its own, and taken")
    held = here.queue(NAME).get()
    assert run.replicate() == ""
    run.equal(original, here.queue(NAME))
    assert run.replicate() == "", "once more changes nothing"
    [saved] = (run.copy.folder / "saved").iterdir()
    assert [json.loads(line)["body"] for line in saved.read_text().splitlines()] == [
        "its own", "its own, and taken",
    ]  # fmt: skip
    assert run.waits("following")["saved"] == str(saved)
    assert held.body == b"its own"


def test_what_is_confirmed_while_a_queue_begins_to_follow_is_saved(two: Made) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue(NAME)
    here.declare_queue(NAME, durable=True, slots=1 << 16)
    confirmed: list[str] = []
    many = Event()

    def publishes(which: int) -> None:
        queue = run.connected("copy").queue(NAME)
        with suppress(NotFound, ReplicaReadOnly):
            for each in count():
                queue.publish(b"%d %d" % (which, each), timeout=PATIENCE)
                confirmed.append(f"{which} {each}")
                if each == 20:
                    many.set()

    with ThreadPoolExecutor() as pool:
        publishers = [pool.submit(publishes, each) for each in range(4)]
        assert many.wait(PATIENCE)
        assert run.replicate() == ""
        for each in publishers:
            each.result(PATIENCE)
    [saved] = (run.copy.folder / "saved").iterdir()
    found = [json.loads(line)["body"] for line in saved.read_text().splitlines()]
    assert set(confirmed) <= set(found)
    assert len(found) - len(confirmed) <= 4, "but for what each could not confirm any more"


def test_an_empty_queue_that_follows_saves_nothing(two: Made) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue(NAME)
    here.declare_queue(NAME)
    assert run.replicate() == ""
    assert not list((run.copy.folder / "saved").glob("*"))


def test_what_cannot_be_saved_is_not_dropped(two: Made) -> None:
    run = two()
    there, here = run.up()
    for name in (NAME, "later"):
        there.declare_queue(name)
        here.declare_queue(name).publish(b"its own")
    here.queue("later").publish(b"scheduled", deliver_after=3600)
    assert "has scheduled messages, which would be lost" in run.replicate("later")
    (run.copy.folder / "saved").write_text("in the way")
    why = run.replicate()
    assert "cannot be saved" in why
    assert f"shmbroker queue purge {NAME}" in why
    for name in (NAME, "later"):
        assert [each[1] for each in content(here.queue(name))] == [b"its own"]
        here.queue(name).publish(b"still")
    (run.copy.folder / "saved").unlink()
    assert run.replicate() == ""


def test_it_goes_on_by_difference_after_either_broker_was_killed(two: Made) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME, slots=4096)
    original.publish_many([bytes(100)] * 3000)
    run.follow(slots=4096)
    copy = here.queue(NAME)
    run.equal(original, copy)
    run.copy.kill()
    original.publish(b"while it was away")
    original.get().ack()
    run.copy.start().becomes("live")
    run.equal(original, copy)
    run.waits("following")
    run.orders("show")
    assert run.waits("following")["link-bytes"] < 20_000, "3,000 messages take 400,000"
    run.original.kill()
    assert run.waits("disconnected")
    assert len(content(copy)) == 3000
    with pytest.raises(ReplicaReadOnly):
        copy.publish(b"x")
    original.publish(b"while its broker was away")
    run.original.start().becomes("live")
    run.equal(original, copy)


def test_detached_it_is_a_queue_like_any_other_though_the_original_is_dead(two: Made) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue(NAME).publish(b"one")
    run.follow()
    run.waits("following")
    copy = here.queue(NAME)
    run.equal(there.queue(NAME), copy)
    run.original.kill()
    run.waits("disconnected")
    assert run.orders("detach", queue=NAME) == ""
    copy.publish(b"two")
    assert [copy.receive() for _ in range(2)] == [b"one", b"two"]
    assert "follows nothing" in run.orders("detach", queue=NAME)


def test_a_deleted_original_leaves_what_was_there_until_it_is_made_again(two: Made) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue(NAME).publish(b"old")
    run.follow()
    run.waits("following")
    run.equal(there.queue(NAME), here.queue(NAME))
    there.delete_queue(NAME)
    run.waits("source-deleted")
    copy = here.queue(NAME)
    assert [each[1] for each in content(copy)] == [b"old"]
    with pytest.raises(ReplicaReadOnly):
        copy.purge()
    original = there.declare_queue(NAME)
    original.publish(b"new")
    run.waits("following")
    run.equal(original, here.queue(NAME))
    [saved] = (run.copy.folder / "saved").iterdir()
    assert '"old"' in saved.read_text()
    there.delete_queue(NAME)
    run.waits("source-deleted")
    here.queue(NAME).delete()
    run.waits("")
    assert run.orders("detach", queue=NAME) != ""
    there.declare_queue("other")
    run.follow("other")
    run.waits("following", "other")
    assert run.copy.stop() == 0
    assert run.original.stop() == 0


def test_transactions_over_several_queues_arrive_as_a_whole(two: Made) -> None:
    run = two()
    there, here = run.up()
    names = ("first", "second", "third")
    originals = [there.declare_queue(name, slots=512) for name in names]
    for name in names:
        run.follow(name, slots=512)
        run.waits("following", name)
    copies = [here.queue(name) for name in names]
    for each in range(200):
        with there.transaction() as transaction:
            for name in names:
                transaction.queue(name).publish(b"%d" % each)
        found = [[m.body for m in copy.browse()] for copy in copies]
        assert all(len(a) <= len(b) for a, b in pairwise(found)), (
            "what is looked at later has at least as much"
        )
    for original, copy in zip(originals, copies, strict=True):
        run.equal(original, copy)


def test_too_few_slots_are_a_failure_with_both_numbers(two: Made) -> None:
    run = two()
    there, _ = run.up()
    original = there.declare_queue(NAME, slots=64)
    run.follow(slots=8)
    original.publish_many([b"x"] * 20)
    assert "message 8 of the original finds no place in 8 slots" in run.waits("failed")["reason"]


@pytest.mark.parametrize(
    ("settings", "of_copy"),
    [({"durable": True}, {}), ({"last_value": True}, {"last_value": True}), ({"ttl": 0.05}, {})],
    ids=str,
)
def test_kinds_of_originals(two: Made, settings: dict[str, Any], of_copy: dict[str, Any]) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME, **settings)
    run.follow(**of_copy)
    for each in range(50):
        original.publish(b"%d" % each, key=f"k{each % 5}")
    run.equal(original, here.queue(NAME))


REFUSED: list[tuple[str, dict[str, object], dict[str, object], str]] = [
    ("off here", {}, {"ha.queue-replication": False}, "ha.queue-replication is false on copy"),
    ("off there", {"ha.queue-replication": False}, {},
     "ha.queue-replication is false on original"),
]  # fmt: skip


@pytest.mark.parametrize(("original", "copy", "why"), [each[1:] for each in REFUSED],
                         ids=[each[0] for each in REFUSED])  # fmt: skip
def test_both_sides_have_to_allow_it(
    two: Made, original: dict[str, object], copy: dict[str, object], why: str
) -> None:
    run = two(original, copy)
    there, here = run.up()
    there.declare_queue(NAME)
    here.declare_queue(NAME).publish(b"its own")
    assert why in run.replicate()
    assert [each[1] for each in content(here.queue(NAME))] == [b"its own"]
    here.queue(NAME).publish(b"still")


def test_what_is_missing_is_told_and_nothing_is_made(two: Made) -> None:
    run = two()
    there, here = run.up()
    why = run.orders("follow", queue=NAME, of=run.peer, settings={"slots": 8})
    assert f"there is no queue '{NAME}' on original" in why
    assert here.queues() == []
    there.declare_queue(NAME)
    assert "--start-replica makes it" in run.replicate()
    here.declare_queue(NAME)
    why = run.orders("follow", queue=NAME, of=run.peer, settings={"slots": 8})
    assert "ha replicate" in why
    assert run.replicate() == ""
    assert "follows tcp://" in run.orders("follow", queue=NAME, of="127.0.0.1:1")


def test_programs_on_other_hosts_are_refused_too(two: Made) -> None:
    port = free_port()
    programs: dict[str, object] = {
        "acceptors.programs.uri": f"tcp://127.0.0.1:{port}",
        "credentials.programs.password": PASSWORD,
    }
    run = two(copy=programs)
    there, _ = run.up()
    there.declare_queue(NAME).publish(b"one")
    run.follow()
    run.waits("following")
    uri = f"tcp://127.0.0.1:{port}?prefer-shared-memory=false"
    with shmbroker.connect(uri, user="programs", password=PASSWORD) as program:
        queue = program.queue(NAME)
        with pytest.raises(ReplicaReadOnly):
            queue.publish(b"x")
        with pytest.raises(ReplicaReadOnly):
            queue.get(timeout=5)
        with pytest.raises(ReplicaReadOnly):
            queue.purge()
        assert [each.body for each in queue.browse()] == [b"one"]


def test_what_cannot_be_followed(two: Made) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue("pages", when_full="page")
    why = run.orders("follow", queue="pages", of=run.peer, settings={"slots": 1024})
    assert "pages are not replicated" in why
    assert here.queues() == []
    there.declare_queue(NAME)
    itself = run.orders_at(run.original, "follow", queue=NAME, of=run.peer)
    assert "the link leads to its own broker" in itself


def test_a_replica_that_stands_still_holds_nothing_up(two: Made) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME, slots=64)
    run.follow(slots=64)
    run.waits("following")
    process = run.copy.process
    assert process is not None
    process.stop()
    try:
        for each in range(5000):
            original.publish(b"%d" % each, timeout=PATIENCE)
            if each >= 10:
                original.receive(timeout=PATIENCE)
    finally:
        process.go_on()
    run.equal(original, here.queue(NAME))
    assert [each[0] for each in content(here.queue(NAME))] == list(range(4990, 5000))
