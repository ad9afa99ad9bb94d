"""Lives that run each other's backups, as processes: granted, refused, taken over, failed back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker.cli.console import supervised
from shmbroker.cli.console.server import running
from shmbroker.ipc.instance import reloading, status
from shmbroker.ipc.instance.config import config as instance
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.broker.hosted import FOLDER
from shmbroker.netbridge.clustered.colocating import FILE
from shmbroker.perf.machine.port import free_port
from tests.cli.command import Shell, eventually
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster
from tests.support.hosts import has_hosts, rack
from tests.support.log_lines import log_lines
from tests.support.witness import Place

NAMES = ("east", "north", "west")
SOON = {"ha__colocated__backup_request_retry_interval": "200ms"}


@pytest.fixture(autouse=True)
def backups_end(cluster: Cluster) -> Iterator[None]:
    """They end with who runs them, some moments later; copies have rings of their own."""
    yield
    for run in cluster.runs.values():
        run.kill()
    for each in cluster.folder.glob(f"*/{FOLDER}/*"):
        ends(each)
        found = instance.load(each)
        if found.policy == "replication" and vhosts.exists(found.vhost):
            vhosts.delete(found.vhost, force=True)


def add(cluster: Cluster, *names: str, asks: Collection[str] = NAMES, **more: object) -> None:
    """Lives that look for each other, of which some ask."""
    for name in names:
        add_one(cluster, name, names, asks=asks, **more)


def add_one(
    cluster: Cluster, name: str, names: tuple[str, ...], *, asks: Collection[str], **more: object
) -> None:
    cluster.looks_for = names
    given = {
        "ha__colocated__request_backup": name in asks,
        "ha__colocated__excludes": [each for each in names if each != name],
        **SOON,
    }
    cluster.add(name, **{**given, **more})


def started(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster[name].start().becomes("live")
    for name in names:
        cluster.sees(name, *(each for each in names if each != name))


def shows(cluster: Cluster, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """What it shows of backups, once that holds."""
    folder = cluster[name].folder / status.RUN
    watch, late = Watch(folder), time.monotonic() + PATIENCE
    try:
        while True:
            told = read_whole(folder / FILE)
            if told and holds(told):
                return told
            assert time.monotonic() < late, f"{name} says {told}\n{story(cluster)}"
            watch.wait(late - time.monotonic())
    finally:
        watch.close()


def story(cluster: Cluster) -> str:
    logs = cluster.folder.glob(f"*/{FOLDER}/*/log/shmbroker.log")
    return "\n".join([cluster.story(), *(f"{each}\n{each.read_text()}" for each in logs)])


def is_hosted(told: dict[str, Any]) -> bool:
    return bool(told["backup"])


def child(cluster: Cluster, host: str, number: int = 1) -> Path:
    return cluster[host].folder / FOLDER / f"colocated_backup_{number}"


def becomes(cluster: Cluster, folder: Path, state: str) -> status.Status:
    found = status.wait_for(folder, state, PATIENCE)
    assert found, f"{status.read(folder)}\n{story(cluster)}"
    return found


def ends(folder: Path) -> None:
    assert status.ended(folder, PATIENCE)


def states(cluster: Cluster, name: str) -> list[str]:
    return [line["state"] for line in cluster[name].said() if line["event"] == "cluster"]


def test_two_ask_each_other_and_a_live_that_is_killed_is_replaced(cluster: Cluster) -> None:
    add(cluster, "east", "west")
    started(cluster, "east", "west")
    for name, other in (("east", "west"), ("west", "east")):
        told = shows(cluster, name, lambda told: is_hosted(told) and told["runs"] != [])
        assert (told["backup"], told["at"]) == ("colocated_backup_1", other)
        assert [(each["name"], each["for"]) for each in told["runs"]] == [
            ("colocated_backup_1", other)
        ]
        becomes(cluster, child(cluster, name), "passive")
    found = json.loads(Shell("")("status", str(cluster["east"].folder), "--json").out)
    assert found["backup"] == {"backup": "colocated_backup_1", "at": "west", "why": ""}
    assert [each["for"] for each in found["runs"]] == ["west"]
    text = Shell("")("status", str(cluster["east"].folder)).out
    assert "colocated_backup_1 at west" in text
    assert "colocated_backup_1 of west" in text

    cluster.publishes("east", b"one coffee")
    cluster["east"].kill()
    becomes(cluster, child(cluster, "west"), "live")
    assert cluster.bodies("east") == [b"one coffee"]
    ends(child(cluster, "east"))  # with who runs it
    assert cluster["west"].status.state == "live"
    shows(cluster, "west", lambda told: not is_hosted(told))

    cluster["east"].start().becomes("live")
    assert cluster.bodies("east") == [b"one coffee"]
    shows(cluster, "east", is_hosted)
    shows(cluster, "west", is_hosted)
    becomes(cluster, child(cluster, "west"), "passive")
    assert states(cluster, "east").count("backup hosted") >= 2  # more, if a busy host was silent


def of(cluster: Cluster, host: str, name: str) -> Path:
    """The folder of the backup that runs there for this one."""
    told = shows(cluster, host, lambda told: any(each["for"] == name for each in told["runs"]))
    [found] = [each["name"] for each in told["runs"] if each["for"] == name]
    return cluster[host].folder / FOLDER / found


@contextmanager
def taken(port: int) -> Iterator[None]:
    """By a process of its own: brokers of tests have what the test has open."""
    program = f"""
import socket, sys
with socket.create_server(("127.0.0.1", {port})):
    print("taken", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"taken\n"
            yield
        finally:
            process.kill()


def test_the_next_one_is_asked_when_a_host_is_killed_or_stopped(cluster: Cluster) -> None:
    add(cluster, *NAMES, asks=["east"])
    started(cluster, *NAMES)
    first = shows(cluster, "east", is_hosted)["at"]
    [second] = {"north", "west"} - {first}
    becomes(cluster, of(cluster, first, "east"), "passive")
    cluster[first].kill()
    shows(cluster, "east", lambda told: told["at"] == second)
    there = of(cluster, second, "east")
    becomes(cluster, there, "passive")
    assert cluster[second].stop() == 0
    ends(there)
    assert status.read(there).state == "stopped"
    assert shows(cluster, "east", lambda told: not is_hosted(told))["why"]
    cluster[second].start().becomes("live")
    shows(cluster, "east", is_hosted)
    becomes(cluster, of(cluster, second, "east"), "passive")
    assert of(cluster, second, "east") == there  # its number stays


def test_three_that_ask_each_other_have_one_each(cluster: Cluster) -> None:
    add(cluster, *NAMES, ha__colocated__max_backups=2)
    started(cluster, *NAMES)
    for name in NAMES:
        at = shows(cluster, name, is_hosted)["at"]
        assert at != name
        becomes(cluster, of(cluster, at, name), "passive")
    told = {name: shows(cluster, name, is_hosted)["runs"] for name in NAMES}
    assert sorted(each["for"] for runs in told.values() for each in runs) == list(NAMES)


def test_ports_are_moved_and_one_that_is_taken_is_a_refusal(cluster: Cluster) -> None:
    add(cluster, "east", "west", asks=["east"])
    wanted = cluster.ports["west"] + 100
    with taken(wanted):
        started(cluster, "east", "west")
        told = shows(cluster, "east", lambda told: "not free" in told["why"])
        assert told["why"].startswith(f"port {wanted} is not free there")
        for name, state in (("west", "refuses a backup"), ("east", "backup refused")):
            assert states(cluster, name).count(state) == 1, "one line, however often it is asked"
    shows(cluster, "east", is_hosted)
    there = of(cluster, "west", "east")
    becomes(cluster, there, "passive")
    found = instance.read(there)
    assert found["acceptors.town.uri"] == f"tcp://127.0.0.1:{wanted}"
    assert found["connectors.west.uri"] == f"tcp://127.0.0.1:{wanted}"
    assert found["connectors.east.uri"] == f"tcp://127.0.0.1:{cluster.ports['east']}"
    cluster["east"].kill()
    becomes(cluster, there, "live")
    told = cluster.until("west", lambda told: any(
        each["name"] == there.name and each["state"] == "up" for each in told["nodes"]
    ))  # fmt: skip
    [node] = [each for each in told["nodes"] if each["name"] == there.name]
    assert node["address"] == f"tcp://127.0.0.1:{wanted}"


def test_the_console_of_a_backup_ends_with_who_runs_it(cluster: Cluster) -> None:
    port, names = free_port(), ("east", "west")
    add_one(cluster, "east", names, asks=["east"])
    add_one(cluster, "west", names, asks=["east"], console__listen=f"127.0.0.1:{port}")
    started(cluster, "east", "west")
    shows(cluster, "east", is_hosted)
    there = of(cluster, "west", "east")
    becomes(cluster, there, "passive")
    process, uri = eventually(lambda: running(there))
    assert uri == f"http://127.0.0.1:{port + 100}/"
    cluster["west"].kill()
    eventually(lambda: process.has_ended)
    supervised.end(cluster["west"].folder)  # that of who was killed goes on


def test_a_backup_inherits_the_environment_and_cannot_be_started_by_hand(cluster: Cluster) -> None:
    add(cluster, "east", "west", asks=["east"])
    said = {"SHMBROKER_INSTANCE_NAME": "west", "SHMBROKER_STORE_SEGMENT": "4MiB"}
    cluster["west"].before = lambda: os.environ.update(said)
    started(cluster, "east", "west")
    there = of(cluster, "west", "east")
    becomes(cluster, there, "passive")
    found = instance.load(there)
    assert (found.name, found.segment) == ("colocated_backup_1", 4 << 20)
    assert {line["instance"] for line in log_lines(found.log)} == {"colocated_backup_1"}
    cluster["west"].kill()
    ends(there)
    done = Shell("")("run", str(there))
    assert done.code == 1
    assert "is a backup that the broker 'west' runs, which is not there" in done.said


def test_a_backup_follows_a_password_that_is_changed_while_it_runs(cluster: Cluster) -> None:
    """Else nobody of its cluster would know it once its links are lost."""
    add(cluster, "east", "west", asks=["east"])
    started(cluster, "east", "west")
    shows(cluster, "east", is_hosted)
    backup = child(cluster, "west")
    becomes(cluster, backup, "passive")
    file = cluster["west"].folder / instance.FILE
    file.write_text(file.read_text().replace(PASSWORD, "a newer password"))
    assert reloading.asked(cluster["west"].folder, PATIENCE) is not None

    def applied() -> list[object]:
        lines = log_lines(backup / "log" / "shmbroker.log")
        return [line["applied"] for line in lines if line["event"] == "reloaded"]

    eventually(lambda: applied() == [["cluster.town.password"]])


def test_a_backup_that_crashes_takes_nobody_with_it_and_is_asked_for_anew(cluster: Cluster) -> None:
    add(cluster, "east", "west", asks=["east"])
    started(cluster, "east", "west")
    there = of(cluster, "west", "east")
    process = becomes(cluster, there, "passive").process
    assert process is not None
    process.kill()
    shows(cluster, "east", lambda told: "exit code" in told["why"])
    shows(cluster, "east", is_hosted)
    again = becomes(cluster, of(cluster, "west", "east"), "passive").process
    assert again != process
    assert [cluster[name].status.state for name in ("east", "west")] == ["live", "live"]


@pytest.mark.skipif(not has_hosts(), reason="makes network namespaces: needs root")
def test_on_three_hosts_one_that_is_cut_off_is_replaced_and_released(cluster: Cluster) -> None:
    with rack(*NAMES) as hosts:
        where: dict[str, object] = {
            f"connectors__{name}__uri": f"tcp://{hosts[name].address}:61619" for name in NAMES
        }
        where |= {"acceptors__town__uri": "tcp://*:61619", "link_defaults__heartbeat_misses": 2}
        add(cluster, *NAMES, asks=["east"], link_defaults__heartbeat_interval="1s", **where)
        for name in NAMES:
            cluster[name].before = hosts[name].enter
        started(cluster, *NAMES)
        first = shows(cluster, "east", is_hosted)["at"]
        [second] = {"north", "west"} - {first}
        there = of(cluster, first, "east")
        becomes(cluster, there, "passive")
        hosts.isolate(first)
        shows(cluster, "east", lambda told: told["at"] == second)
        becomes(cluster, of(cluster, second, "east"), "passive")
        hosts.heal()
        ends(there)
        assert status.read(there).state == "stopped"
        shows(cluster, first, lambda told: told["runs"] == [])
        assert shows(cluster, "east", is_hosted)["at"] == second
        cluster.publishes("east", b"one coffee")
        cluster["east"].kill()
        becomes(cluster, of(cluster, second, "east"), "live")
        assert cluster.bodies("east") == [b"one coffee"]


def add_replicated(cluster: Cluster, witness: Place, *names: str, **more: object) -> None:
    """Lives with data of their own."""
    for name in names:
        address = f"tcp://127.0.0.1:{free_port()}"
        given: dict[str, object] = {
            "store__path": "data",
            "ha__policy": "replication",
            "ha__members": [f"{name}={address}"],
            "ha__replication__check-for-live-server": True,
            "ha__replication__check-for-live-wait": "1s",
            "ha__replication__vote-retries": 1000,
            "ha__replication__quorum-vote-wait": "5s",
            "ha__replication__retry-replication-wait": "100ms",
            "acceptors__members__uri": address,
            "acceptors__members__roles": ["replica"],
            "credentials__members__password": PASSWORD,
            "credentials__members__role": "replica",
            **witness.settings,
            **more,
        }
        add_one(cluster, name, names, asks=names, ha__colocated__max_backups=3, **given)


def in_sync(cluster: Cluster, name: str) -> Path:
    """The folder of its backup, which could take over."""
    at = shows(cluster, name, is_hosted)["at"]
    there = of(cluster, at, name)
    watch, late = Watch(there / status.RUN), time.monotonic() + PATIENCE
    try:
        while not status.read(there).replication.startswith("in sync"):
            assert time.monotonic() < late, story(cluster)
            watch.wait(late - time.monotonic())
    finally:
        watch.close()
    cluster.says(name, "in sync")
    return there


def bodies(vhost: str) -> list[bytes]:
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        return [message.body for message in broker.queue("orders").browse()]


@pytest.fixture
def witness(cluster: Cluster) -> Iterator[Place]:
    made = Place(cluster.folder / "witness")
    made.begin()
    yield made
    made.kill()


def test_copies_that_run_at_each_other_take_over_and_fail_back(
    cluster: Cluster, witness: Place
) -> None:
    names = ("east", "west")
    add_replicated(cluster, witness, *names)
    started(cluster, *names)
    at_west, at_east = in_sync(cluster, "east"), in_sync(cluster, "west")
    assert (at_west.parents[1].name, at_east.parents[1].name) == ("west", "east")
    cluster.publishes("east", b"one coffee")
    other = instance.load(at_west).vhost
    assert other.startswith(f"{cluster.vhosts['east']}-at-")
    cluster["east"].kill()
    becomes(cluster, at_west, "live")
    assert bodies(other) == [b"one coffee"]
    with shmbroker.connect(f"shm://{other}", name="test") as broker:
        broker.queue("orders").publish(b"one tea")
    shows(cluster, "west", lambda told: not is_hosted(told))

    cluster["east"].start().becomes("live")
    assert cluster.bodies("east") == [b"one coffee", b"one tea"]
    assert in_sync(cluster, "east") == at_west
    in_sync(cluster, "west")


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="`make crash` has it")
def test_a_copy_is_made_at_another_one_when_its_host_is_killed(
    cluster: Cluster, witness: Place
) -> None:
    add_replicated(cluster, witness, *NAMES)
    started(cluster, *NAMES)
    in_sync(cluster, "east")
    first = shows(cluster, "east", is_hosted)["at"]
    [second] = {"north", "west"} - {first}
    cluster.publishes("east", b"one coffee")
    cluster[first].kill()
    shows(cluster, "east", lambda told: told["at"] == second)
    there = in_sync(cluster, "east")
    assert there.parents[1].name == second
    cluster.publishes("east", b"one tea")
    cluster["east"].kill()
    becomes(cluster, there, "live")
    assert bodies(instance.load(there).vhost) == [b"one coffee", b"one tea"]
