"""Messages of a broker that are torn: who asked for them is told, and the program goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.message.outgoing import parts
from shmbroker.netbridge.client.record import contents, delivered, plain, record
from shmbroker.netbridge.remote.action import Action
from shmbroker.netbridge.remote.session import Session
from shmbroker.netbridge.serving.served import Served
from shmbroker.netbridge.wire.malformed import Malformed
from tests.support.serving import SITE, Site

PASSWORD = "correct horse battery"
PATIENCE = 60.0
WHOLE = plain(b"a body") + record(parts(b"x", "key", {"n": 7}, 60.0, None))


def test_every_torn_end_is_malformed() -> None:
    assert [each.body for each in delivered(WHOLE)] == contents(WHOLE)[2] == [b"a body", b"x"]
    first = len(plain(b"a body"))
    for end in {*range(1, len(WHOLE))} - {first}:
        with pytest.raises(Malformed):
            list(delivered(WHOLE[:end]))
        with pytest.raises(Malformed):
            contents(WHOLE[:end])


def test_a_consumer_is_told_and_the_connection_goes_on(
    served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivers = Served.delivers

    def torn(self: Served, consumer: int, count: int, body: Any, batch: Any) -> None:
        delivers(self, consumer, count, bytes(body)[:-9], batch)

    served.broker.declare_queue("q").publish(b"x")
    with shmbroker.connect(f"tcp://{SITE.user}:{PASSWORD}@127.0.0.1:{served.port}") as broker:
        queue = broker.queue("q")
        with monkeypatch.context() as changed:
            changed.setattr(Served, "delivers", torn)
            with pytest.raises(Malformed):
                next(iter(queue.consume(timeout=60)))
        assert queue.statistics().taken == 1
        queue.publish(b"y")
        assert queue.receive(timeout=60) == b"y"


ODD: dict[str, Callable[[Any], object]] = {
    "statistics": lambda queue: queue.statistics(),
    "get": lambda queue: queue.get(timeout=None),
    "subscribe": lambda queue: next(iter(queue._broker.subscribe("q"))),
}


@pytest.mark.parametrize("verb", ODD)
def test_a_call_whose_answer_is_odd_ends_and_its_link_as_well(
    served: Site, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    done = Session.done

    def odd(self: Session, call: int, code: int, *more: Any, **named: Any) -> list[Action]:
        takes = named.get("takes", 0)
        return done(self, call, code, takes=takes, body=b"\x93")

    served.broker.declare_queue("q", non_destructive=verb == "subscribe").publish(b"x")
    with shmbroker.connect(f"tcp://{SITE.user}:{PASSWORD}@127.0.0.1:{served.port}") as broker:
        queue = broker.queue("q")
        broker.on_event(lambda event, detail: events.append(event.value))
        events: list[str] = []
        with monkeypatch.context() as changed, ThreadPoolExecutor() as pool:
            changed.setattr(Session, "done", odd)
            with pytest.raises(Malformed, match="the broker's answer is malformed: "):
                pool.submit(ODD[verb], queue).result(PATIENCE)
        assert len(queue) == 1
        link = broker._session.link
        assert link is not None
        assert link.why.startswith("malformed: the answer to ")
        assert events == ["failure-detected", "reattached"]
