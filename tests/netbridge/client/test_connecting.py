"""Connecting over a link: what fails at once, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed, InvalidArgument
from shmbroker.netbridge.client.connecting import separated
from shmbroker.perf.machine.port import free_port
from tests.support.serving import Site


def test_nobody_is_there() -> None:
    here, there = free_port(), free_port()
    uri = f"failover:(tcp://127.0.0.1:{here},tcp://127.0.0.1:{there})"
    with pytest.raises(ConnectionClosed) as caught:
        shmbroker.connect(uri, user="site", password="p")
    assert f"127.0.0.1:{here}: " in str(caught.value)
    assert f"127.0.0.1:{there}: " in str(caught.value)


def test_another_password_is_not_let_in(served: Site) -> None:
    with pytest.raises(ConnectionClosed, match="has another key: the password is another one"):
        shmbroker.connect(f"tcp://127.0.0.1:{served.port}", user="site", password="another")


def test_a_connection_is_closed_in_good_order(served: Site) -> None:
    uri = f"tcp://site:correct horse battery@127.0.0.1:{served.port}"
    with shmbroker.connect(uri) as broker:
        assert not broker.is_closed
        assert "correct" not in repr(broker)
    assert broker.is_closed
    with pytest.raises(ConnectionClosed):
        broker.queues()


def test_user_and_password_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHMBROKER_USER", raising=False)
    monkeypatch.delenv("SHMBROKER_PASSWORD", raising=False)
    with pytest.raises(InvalidArgument, match="SHMBROKER_PASSWORD"):
        shmbroker.connect("tcp://127.0.0.1:1")
    monkeypatch.setenv("SHMBROKER_USER", "u")
    monkeypatch.setenv("SHMBROKER_PASSWORD", "p")
    assert separated("tcp://h:1", None, None) == ("tcp://h:1", "u", "p")
    assert separated("failover:(tcp://a:b@h,tcp://i)", None, None)[1:] == ("a", "b")


@pytest.mark.parametrize("given", [{}, {"user": "u", "password": "p"}])
@pytest.mark.parametrize(
    "uri",
    [
        "me:SECRET@h:61616",
        "tcp://me:SECRET/SECRET@h",
        "failover:(tcp://me:SECRET,SECRET@h)",
        "failover:(tcp://me:SECRET(SECRET@h)",
        "tcp://me:SECRET@SECRET@h:1",
        "tcp://me:1?SECRET@h",
    ],
)
def test_a_password_that_is_not_found_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, uri: str, given: dict[str, str]
) -> None:
    for name in ("SHMBROKER_USER", "SHMBROKER_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidArgument) as caught:
        shmbroker.connect(uri, **given)
    assert "SECRET" not in str(caught.value)
    assert "password=" in str(caught.value)


@pytest.mark.parametrize("option", [{"create": True}, {"observe": True}, {"spin": 1.0}])
def test_what_is_for_shared_memory_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(option))):
        shmbroker.connect("tcp://127.0.0.1:1", user="u", password="p", **option)
