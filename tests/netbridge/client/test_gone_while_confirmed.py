"""A queue is deleted while what was published to it is to be confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shmbroker import NotFound
from shmbroker.core.codes import NOT_FOUND
from shmbroker.netbridge.serving.destination import ToQueue
from shmbroker.netbridge.wire.words import Verb
from tests.support.program import Program, ok, publish
from tests.support.serving import Site


@pytest.fixture
def program(served: Site) -> Iterator[Program]:
    made = served.program()
    yield made
    made.vanish()


def test_who_waits_for_the_confirm_is_told_and_goes_on(
    served: Site, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToQueue, "confirming", lambda to, *of: [to._queue])
    monkeypatch.setattr(ToQueue, "confirm", lambda *of: of[-1](NOT_FOUND))
    served.broker.declare_queue("q", slots=64).publish_many([b"x"] * 4)
    producer = program.producer(queue="q")
    with pytest.raises(NotFound):
        program.publish(producer, b"y")
    assert program.ask(Verb.LOOK, queue="q", at="length")
    assert not program.endings


def test_the_confirm_of_what_has_waited_for_room(
    served: Site, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*of: Any) -> None:
        raise NotFound("queue 'q' was deleted")

    monkeypatch.setattr(ToQueue, "confirming", lambda to, *of: [to._queue])
    monkeypatch.setattr(ToQueue, "confirm", gone)
    queue = served.broker.declare_queue("q", slots=4)
    queue.publish_many([b"x"] * 4)
    producer = program.producer(queue="q")
    late = program.begin(Verb.PUBLISH, **publish(producer, b"late"), wait_ms=-1)
    program.ask(Verb.LOOK, queue="q", at="length")  # the publish has come, and waits
    assert late not in program.outcomes
    queue.receive()
    with pytest.raises(NotFound):
        ok(program.outcome(late))
    assert program.ask(Verb.LOOK, queue="q", at="length")
    assert not program.endings
