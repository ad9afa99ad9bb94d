"""What a program subscribes to: the queue waits for it, as long as it subscribes."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import zmq

import shmbroker
from shmbroker import Broker
from shmbroker.netbridge.link.times import NO_LIMIT
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.remote.session import SessionLimits
from shmbroker.netbridge.serving.served import Served
from shmbroker.netbridge.serving.watcher import Watcher
from shmbroker.netbridge.wire.frame import Attach, Command, Grant
from shmbroker.netbridge.wire.words import Demand, Role, Verb
from tests.support.hostile import Far, Peer
from tests.support.serving import KEY, Site


def test_what_comes_back_behind_its_end_moves_no_gate_of_another(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        queue.publish_many([b"x"] * 3)
        fields = {"queue": "q", "start": "earliest"}
        served = cast("Served", SimpleNamespace(role=Role.CLIENT))
        watcher = Watcher(served, 1, broker, fields, None)
        while watcher._next() is not None:
            pass
        place = the_gate(queue)
        watcher.close()
        other = broker.subscribe("q", start="earliest")
        assert the_gate(queue) == place, "it has the same one"
        watcher.seen([0, 1, 2])
        assert the_gate(queue) == place
        assert other.get(timeout=60).position == 0


def test_a_link_that_is_lost_by_what_is_shown_ends_nothing_else(
    broker: Broker, tmp_path: Path
) -> None:
    """Its session ends with it, and the next message is too large to be shown."""
    queue = broker.declare_queue("q")
    site = Site(broker, tmp_path, limits=SessionLimits(message_bytes=1000))
    far = Far(site.port, KEY, KEY, Role.CLIENT)
    with site.served() as audience, zmq.Context() as context:
        service = audience._service
        with closing(Peer(context, far).welcomed()) as peer:
            peer.says(Attach(b"s" * 16, 1, 1, False, 0, NO_LIMIT)).says(asks(0, Verb.CONSUMER))
            assert peer.hears_of(0)
            assert peer.says(Grant(1, 10, 1 << 20)).says(asks(1, Verb.LOOK)).hears_of(1)

            def step() -> None:
                (served,), (end,) = service._served.values(), audience._ends
                queue.publish(b"one")
                queue.publish(bytes(1000))
                peer.close()
                while end.owner.send(end, b""):
                    time.sleep(0.001)  # nothing else tells before this step is over
                served.consumers[1].rung()
                assert served.session.is_over

            service.ask(step)
        with closing(Peer(context, far)) as next_one:
            next_one.welcomed()


def asks(number: int, verb: Verb) -> Command:
    body = asked(queue="q", looks=True, start="earliest", at="length")
    return Command(number, verb, 1, 0, 1, Demand.EFFECTIVE, 0, False, 0, False, body)


def the_gate(queue: Any) -> tuple[int, int]:
    """Which it is, and where it stands."""
    (gate,) = queue.gates()
    return gate.index, gate.position
