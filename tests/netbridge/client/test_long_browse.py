"""A browse that looks at many messages and finds few leaves the worker to others in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shmbroker import InvalidArgument, NotFound
from shmbroker.netbridge.serving.looking import Browse
from shmbroker.netbridge.serving.served import Served
from shmbroker.netbridge.wire.words import Verb
from tests.support.program import Program, bodies
from tests.support.serving import Site

MESSAGES = 3000


@pytest.fixture
def program(served: Site) -> Iterator[Program]:
    made = served.program()
    yield made
    made.vanish()


def test_a_long_browse_is_many_works(
    served: Site, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = 0
    in_worker = Served.in_worker

    def counting(self: Served, command: Any, *what: Any) -> None:
        nonlocal works
        works += command.verb is Verb.BROWSE
        in_worker(self, command, *what)

    monkeypatch.setattr(Served, "in_worker", counting)
    queue = served.broker.declare_queue("q", slots=4096)
    queue.publish_many([b"%d" % number for number in range(MESSAGES)])
    queue.publish(b"last", properties={"n": 7})
    page = program.ask(Verb.BROWSE, queue="q", selector="n = 7")
    assert bodies(page.body) == [b"last"]
    assert works > 1


def test_its_queue_is_deleted_and_made_again_meanwhile(
    served: Site, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = 0
    go_on = Browse.go_on

    def deleting(browse: Browse) -> Browse:
        nonlocal pieces
        pieces += 1
        if pieces == 2:
            served.broker.delete_queue("q", force=True)
            served.broker.declare_queue("q").publish(b"other", properties={"n": 7})
        return go_on(browse)

    monkeypatch.setattr(Browse, "go_on", deleting)
    served.broker.declare_queue("q", slots=4096).publish_many([b"x"] * MESSAGES)
    with pytest.raises(NotFound):
        program.ask(Verb.BROWSE, queue="q", selector="n = 7")
    page = program.ask(Verb.BROWSE, queue="q", selector="n = 7")
    assert bodies(page.body) == [b"other"]


@pytest.mark.parametrize("position", [-1, 1 << 63, "1"])
def test_a_page_begins_at_a_position(
    served: Site, program: Program, position: object
) -> None:
    served.broker.declare_queue("q").publish(b"x")
    with pytest.raises(InvalidArgument):
        program.ask(Verb.BROWSE, queue="q", position=position)
    assert bodies(program.ask(Verb.BROWSE, queue="q", position=0).body) == [b"x"]
