"""A bridge whose target is found: `to = "discovery:NAME"`."""

from __future__ import annotations

import time
from pathlib import Path

from shmbroker.perf.machine.port import free_port
from tests.netbridge.broker.conftest import Two
from tests.support.link import PATIENCE, SOURCE, TARGET


def finds(two: Two, folder: Path) -> None:
    folder.mkdir()
    place = {"type": "registry", "registry": str(folder)}
    heard = {f"discovery.lan.{key}": each for key, each in place.items()}
    two.write(
        two.near, **heard,
        **{"discovery.lan.credentials": "site", "bridges.to-far.to": "discovery:lan"},
    )  # fmt: skip
    said = {f"broadcast.lan.{key}": each for key, each in place.items()}
    two.write(
        two.far, **said,
        **{"broadcast.lan.credentials": "site", "broadcast.lan.connector": "far",
           "broadcast.lan.broadcast-period": "200ms",
           "connectors.far.uri": f"tcp://127.0.0.1:{two.port}"},
    )  # fmt: skip


def test_it_goes_to_a_broker_that_is_announced_later_and_to_its_successor(
    two: Two, tmp_path: Path
) -> None:
    finds(two, tmp_path / "registry")
    two.near.start().becomes("live")
    near = two.connected("near")
    near.declare_queue(SOURCE, slots=64).publish_many([b"1", b"2"])
    assert two.becomes("backoff")["plan"] == "discovery:lan"
    two.far.start().becomes("live")
    far = two.connected("far")
    target = far.declare_queue(TARGET, slots=64)
    assert target.receive_many(2, timeout=PATIENCE)[0] == b"1"
    found = two.becomes("up")
    assert (found["peer"], found["member"]) == ("far", f"tcp://127.0.0.1:{two.port}")


def test_a_broker_that_is_announced_to_itself_first_goes_to_another_one(
    two: Two, tmp_path: Path
) -> None:
    place = tmp_path / "registry"
    finds(two, place)
    uri = f"tcp://127.0.0.1:{free_port()}"
    two.write(
        two.near, **{
            "acceptors.own.uri": uri, "acceptors.own.roles": ["peering"], "connectors.own.uri": uri,
            "broadcast.lan.type": "registry", "broadcast.lan.registry": str(place),
            "broadcast.lan.credentials": "site", "broadcast.lan.connector": "own",
            "broadcast.lan.broadcast-period": "200ms",
        },
    )  # fmt: skip
    two.near.start().becomes("live")
    near = two.connected("near")
    near.declare_queue(SOURCE, slots=64).publish(b"1")
    until = time.monotonic() + PATIENCE
    while not any(each["state"] == "found" for each in two.lines(two.near, "discovery")):
        assert time.monotonic() < until, two.near.said()[-5:]
        time.sleep(0.01)
    two.far.start().becomes("live")
    target = two.connected("far").declare_queue(TARGET, slots=64)
    assert target.receive(timeout=PATIENCE) == b"1"
    assert "refused" not in {each["state"] for each in two.lines(two.near, "link")}


def test_who_is_announced_with_another_password_is_not_gone_to(two: Two, tmp_path: Path) -> None:
    finds(two, tmp_path / "registry")
    two.write(two.near, **{"credentials.site.password": "another horse battery staple"})
    two.far.start().becomes("live")
    two.near.start().becomes("live")
    two.connected("near").declare_queue(SOURCE, slots=64)
    assert two.becomes("backoff")["member"] == ""
