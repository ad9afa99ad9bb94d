"""Programs whose broker says where they are to go, as one that is scaled down does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import shmbroker
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.remote.topology import Node
from shmbroker.netbridge.serving.audience import Audience
from shmbroker.netbridge.wire.frame import Seen
from tests.support.serving import Site

PATIENCE = 60.0
LOGIN = {"user": "site", "password": "correct horse battery"}
SLOWLY = f"heartbeat-interval={PATIENCE:g}s"
"""On a busy machine nobody is taken for lost."""


@pytest.fixture
def two(vhost: str, tmp_path: Path) -> Iterator[tuple[Audience, str, str]]:
    """Programs are here, and at another address, with that one's audience."""
    times = LinkTimes(heartbeat_interval=PATIENCE)
    with (
        shmbroker.connect(f"shm://{vhost}", create=True, name="test") as broker,
        Site(broker, tmp_path, times=times).served() as here,
    ):
        other = Site(broker, tmp_path, times=times)
        with other.served():
            yield here, _uri(here), f"tcp://127.0.0.1:{other.port}"


def _listener(audience: Audience) -> Listener:
    members = audience._service._thread.members
    return next(each for each in members if isinstance(each, Listener))


def _uri(audience: Audience) -> str:
    return _listener(audience).address


@pytest.mark.parametrize(
    ("mode", "events"),
    [
        ("automatic", ["moving", "failure-detected", "failover-completed"]),
        ("application", ["moved"]),
    ],
)
def test_a_program_is_told_of_it_and_goes_there(
    two: tuple[Audience, str, str], mode: str, events: list[str]
) -> None:
    audience, here, there = two
    told: SimpleQueue[tuple[str, str]] = SimpleQueue()
    with ExitStack() as opened:
        far: Any = opened.enter_context(
            shmbroker.connect(f"failover:({here}?{SLOWLY})?failover-mode={mode}", **LOGIN)
        )
        far.on_event(lambda event, detail: told.put((event.value, detail)))
        audience.tell((Node(b"b" * 16, 0, "there", there),))
        audience._service.ask(lambda: _listener(audience).move_programs(there))
        found = [told.get(timeout=PATIENCE) for _ in events]
        assert [event for event, _ in found] == events
        assert found[0][1] == there
        if mode == "automatic":
            assert str(far._session.member.peer) == there.removeprefix("tcp://")
            far.declare_queue("q").publish(b"")
    assert told.empty()


def test_who_comes_before_the_broker_is_closed_goes_there_too(
    two: tuple[Audience, str, str],
) -> None:
    """It was attached to a broker that is on its way out, and lost it a moment later."""
    audience, here, there = two
    audience._service.ask(lambda: _listener(audience).move_programs(there))
    with shmbroker.connect(f"failover:({here}?{SLOWLY})", **LOGIN) as opened:
        far: Any = opened
        assert str(far._session.member.peer) == there.removeprefix("tcp://")


def test_what_was_said_last_counts_for_who_finds_out_late(
    two: tuple[Audience, str, str],
) -> None:
    """The connection was closed behind it, and nothing of that was looked at."""
    audience, here, there = two
    told: SimpleQueue[tuple[str, str]] = SimpleQueue()
    with shmbroker.connect(f"failover:({here}?{SLOWLY})", **LOGIN) as opened:
        far: Any = opened
        far.on_event(lambda event, detail: told.put((event.value, detail)))
        audience.tell((Node(b"b" * 16, 0, "there", there),))
        link, service = far._session.link, audience._service

        def closes() -> None:
            listener = _listener(audience)
            listener.move_programs(there)
            listener.end()

        def meanwhile() -> None:
            service.ask(closes)
            assert link._connection._monitor.socket.poll(PATIENCE * 1000)
            link.say(Seen(0))

        far._session._thread.ask(meanwhile)
        found = [told.get(timeout=PATIENCE) for _ in range(2)]
        assert [event for event, _ in found] == ["moving", "failure-detected"]
        assert found[0][1] == there


def test_nobody_waits_for_what_is_said_to_a_broker_that_has_gone(
    two: tuple[Audience, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The goodbye is answered behind the end of the connection, and nobody will read that."""
    monkeypatch.setattr("shmbroker.netbridge.carrier.socket.LINGER_MS", int(PATIENCE * 2000))
    audience, here, _ = two
    told: SimpleQueue[str] = SimpleQueue()
    with shmbroker.connect(f"failover:({here}?{SLOWLY})?call-timeout=1s", **LOGIN) as opened:
        far: Any = opened
        far.on_event(lambda event, _: told.put(event.value))
        link, service = far._session.link, audience._service

        def closes() -> None:
            listener = _listener(audience)
            listener._stop()
            listener.end()

        def meanwhile() -> None:
            service.ask(closes)
            assert link._connection._monitor.socket.poll(PATIENCE * 1000)

        far._session._thread.ask(meanwhile)
        assert told.get(timeout=PATIENCE) == "failure-detected"
        begun = time.monotonic()
    assert time.monotonic() - begun < PATIENCE


def test_nobody_goes_to_a_live_of_an_epoch_before_one_that_was_told(
    two: tuple[Audience, str, str],
) -> None:
    """The broker of another node tells that the backup serves; its former live may not know that
    yet."""
    audience, here, there = two
    told: SimpleQueue[str] = SimpleQueue()
    members = f"{here}?{SLOWLY},{there}?{SLOWLY}"
    uri = f"failover:({members})?randomize=false&reconnect-deadline=-1&call-timeout=1s"
    far: Any = shmbroker.connect(uri, **LOGIN)
    try:
        far.on_event(lambda event, detail: told.put(event.value))
        audience.tell((Node(b"b" * 16, 5, "backup", "tcp://127.0.0.1:1"),))
        audience._service.ask(lambda: _listener(audience).move_programs(there))
        assert [told.get(timeout=PATIENCE) for _ in range(2)] == ["moving", "failure-detected"]
        session, late = far._session, time.monotonic() + PATIENCE
        while True:
            why_not = session._thread.ask(lambda: session.link.why_not)
            if "is of epoch 0, and 5 was seen" in why_not and "passive" in why_not:
                break
            assert time.monotonic() < late, why_not
            time.sleep(0.01)  # nothing tells
        assert told.empty()
    finally:
        far.close()  # which nobody answers: it waits for `call-timeout`
