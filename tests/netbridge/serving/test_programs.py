"""The programs on other hosts are listed with what went over their links, and are disconnected."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker import NotFound
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.serving.consumer import Get
from shmbroker.netbridge.serving.programs import BY_OPERATOR, Programs
from shmbroker.netbridge.serving.service import OF_ANOTHER
from shmbroker.netbridge.wire.words import Role, Verb
from tests.support.program import PATIENCE, Program, bodies
from tests.support.serving import SITE, Site

BODY = b"x" * 10_000


@pytest.fixture
def here(vhost: str, tmp_path: Path) -> Iterator[tuple[Site, Programs]]:
    """Served in this process."""
    with shmbroker.connect(f"shm://{vhost}", create=True, name="test") as broker:
        site = Site(broker, tmp_path)
        with site.opened, site.served() as audience:
            yield site, Programs(audience._service)


def test_one_is_listed_with_its_user_its_address_and_its_bytes(
    here: tuple[Site, Programs],
) -> None:
    site, programs = here
    queue = site.broker.declare_queue("q")
    assert programs.listed() == []
    program = site.program(name="shop")
    producer = program.producer(queue="q")
    [before] = programs.listed()
    assert before["session"] == program.client.session.hex()[:12]
    named = {each.id: each.name for each in site.broker.participants()}
    assert named[before["participant"]] == before["name"] == "shop"
    assert (before["user"], before["role"], before["address"]) == ("site", "client", "127.0.0.1")
    program.publish(producer, BODY)
    program.get("q")
    [after] = programs.listed()
    for counted in ("received_bytes", "sent_bytes"):
        assert len(BODY) < after[counted] - before[counted] < len(BODY) + 2000
    for counted in ("received_frames", "sent_frames"):
        assert before[counted] < after[counted]
    assert queue.statistics().taken == 1


def test_one_that_only_looks_is_no_participant(here: tuple[Site, Programs]) -> None:
    site, programs = here
    program = site.program(role=Role.VIEWER)
    program.ask(Verb.LOOK, at="queues")
    [row] = programs.listed()
    assert (row["participant"], row["role"], row["attached"]) == (None, "viewer", True)
    program.cut()
    program.until(lambda: not programs.listed()[0]["attached"])
    assert programs.listed()[0]["address"] is None


def test_one_is_disconnected_and_may_come_again(here: tuple[Site, Programs]) -> None:
    site, programs = here
    queue = site.broker.declare_queue("q")
    queue.publish_many([b"a", b"b"])
    program = site.program()
    _, got = program.get("q")
    producer = program.producer(queue="q")
    program.publish(producer, b"c")
    [row] = programs.listed()
    programs.disconnect(row["session"])
    assert queue.receive_many() == [b"a", b"b", b"c"]  # what it held, what it has confirmed
    assert got == [b"a"]
    program.until(lambda: bool(program.endings))
    assert program.endings[0].detail == BY_OPERATOR
    program.reconnect()
    program.publish(program.producer(queue="q"), b"d")
    assert queue.receive(timeout=10) == b"d"
    with pytest.raises(NotFound, match="it has left meanwhile"):
        programs.disconnect("00" * 16)


def test_nobody_goes_on_with_the_session_of_another(here: tuple[Site, Programs]) -> None:
    site, programs = here
    site.broker.declare_queue("q")
    program = site.program()
    producer = program.producer(queue="q")
    other = Program(site.port, SITE, role=Role.VIEWER, session=program.client.session)
    site.opened.callback(other.vanish)
    other.until(lambda: len(other.endings) > 1)
    assert {each.detail for each in other.endings} == {OF_ANOTHER}
    program.publish(producer, b"a")
    assert [row["role"] for row in programs.listed()] == ["client"]
    program.lost()  # its own program finds it again
    program.publish(producer, b"b")
    assert "reattached" in program.events


def test_nothing_is_kept_of_one_that_leaves_its_consumer_open(here: tuple[Site, Programs]) -> None:
    site, programs = here
    site.broker.declare_queue("q")
    program = site.program()
    program.consumer(4, queue="q")
    program.close()
    service = programs._service
    assert service.ask(lambda: list(service._served)) == []


def test_a_get_takes_nothing_while_its_program_is_away(
    here: tuple[Site, Programs], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, programs = here
    queue = site.broker.declare_queue("q")
    program, has_looked = site.program(), threading.Event()
    go_on = Get.go_on

    def goes_on(self: Get) -> None:
        go_on(self)
        has_looked.set()

    monkeypatch.setattr(Get, "go_on", goes_on)
    call = program.begin(Verb.GET, wait_ms=-1, body=asked(queue="q"))
    program.until(has_looked.is_set)
    program.cut()
    program.until(lambda: not programs.listed()[0]["attached"])
    has_looked.clear()
    queue.publish(b"for others")
    assert has_looked.wait(PATIENCE)
    assert queue.receive(timeout=0) == b"for others"
    queue.publish(b"for it")
    program.lost()  # and it comes again
    assert bodies(program.outcome(call).body) == [b"for it"]
    assert "reattached" in program.events
