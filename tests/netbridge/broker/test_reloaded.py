"""What a reload says that it applies is so from then on, as if the broker had begun with it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import shmbroker
from shmbroker import Broker
from shmbroker.netbridge.broker import whereabouts
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from tests.cli.command import eventually
from tests.netbridge.broker.conftest import PASSWORD, Two
from tests.support.link import PATIENCE, TARGET

LATER: dict[str, object] = {
    "credentials.later.password": PASSWORD,
    "credentials.later.user": "site",
    "credentials.later.role": ["peering", "client"],
}


def program(two: Two) -> Broker:
    """As it comes to `far`, once that listens."""
    more = "startup-max-reconnect-attempts=-1&prefer-shared-memory=false"
    url = f"failover:(tcp://127.0.0.1:{two.port})?{more}"
    made: Any = two.opened.enter_context(shmbroker.connect(url, user="site", password=PASSWORD))
    return made  # type: ignore[no-any-return]


def begin(two: Two) -> None:
    """It listens then, or has tried to."""
    two.far.start().becomes("live")
    eventually(lambda: two.lines(two.far, "acceptor"))


def former(two: Two) -> dict[str, None]:
    """Of the credentials that are replaced."""
    return {key: None for key in two.given[two.far.folder] if key.startswith("credentials.")}


def test_an_address_that_is_taken_is_listened_to_as_was_reloaded_meanwhile(two: Two) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", two.port))
        taken.listen()
        begin(two)
        two.write(two.far, **former(two), **LATER, **{"acceptors.site.roles": ["client"]})
        two.reload(two.far)
        taken.shutdown(socket.SHUT_RDWR)  # the processes of this test have it, too
    two.connected("far").declare_queue(TARGET)
    program(two).queue(TARGET).publish(b"from afar", timeout=PATIENCE)
    assert two.far.stop() == 0


def test_an_acceptor_admits_programs_for_the_first_time(two: Two) -> None:
    begin(two)
    two.connected("far").declare_queue(TARGET)
    more = {"acceptors.site.roles": ["peering", "client"]}
    two.write(two.far, **former(two), **LATER, **more)
    assert "acceptors.site.roles" in two.reload(two.far)["applied"]
    program(two).queue(TARGET).publish(b"from afar", timeout=PATIENCE)


def test_programs_and_backups_are_told_another_address(two: Two) -> None:
    more = {"acceptors.site.roles": ["peering", "client"]}
    two.write(two.far, **former(two), **LATER, **more)
    begin(two)
    there = program(two)
    uris = {each.uri for each in there.topology()}
    other = f"tcp://127.0.0.2:{free_port()}"
    two.write(two.far, **{"connectors.outside.uri": other})
    assert two.reload(two.far)["applied"] == ["connectors.outside.uri"]
    eventually(lambda: other in {each.uri for each in there.topology()} - uris)
    told = whereabouts.read(two.far.folder / "store", 1)
    assert told is not None
    assert told.uri == other


def test_what_a_killed_program_had_comes_back_as_soon_as_was_reloaded(
    two: Two, tmp_path: Path
) -> None:
    more = {"acceptors.site.roles": ["peering", "client"], "acceptors.site.session-ttl": "1d"}
    two.write(two.far, **former(two), **LATER, **more)
    begin(two)
    queue = two.connected("far").declare_queue(TARGET)
    two.write(two.far, **{"acceptors.site.session-ttl": "100ms"})
    two.reload(two.far)

    def takes() -> int:
        program(two).queue(TARGET).get(timeout=PATIENCE)
        os._exit(0)

    queue.publish(b"once more")
    taken = Process(takes, tmp_path / "errors")
    assert taken.has_ended(PATIENCE)
    assert taken.status == 0, "it has taken it"
    assert queue.receive(timeout=PATIENCE) == b"once more"
