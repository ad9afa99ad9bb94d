"""A broker's process owns its links: begun and ended with its being live, seen, and ordered."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

from click.testing import CliRunner, Result

import shmbroker
from shmbroker.cli.main import root
from shmbroker.ipc.spool import hlog
from shmbroker.netbridge.broker.table import read
from tests.netbridge.broker.conftest import PASSWORD, Two, made
from tests.support.link import PATIENCE, SOURCE, TARGET


def run_cli(arguments: list[str]) -> Result:
    return CliRunner().invoke(root, arguments)


def test_a_bridge_of_the_configuration_ships_its_queue(two: Two) -> None:
    near, far = two.started()
    near.queue(SOURCE).publish_many([b"%d" % each for each in range(100)], timeout=PATIENCE)
    target, got = far.queue(TARGET), []
    while len(got) < 100:
        got += target.receive_many(100 - len(got), timeout=PATIENCE)
    assert got == [b"%d" % each for each in range(100)]
    found = two.becomes("up")
    assert (found["peer"], found["messages"]) == ("far", 100)
    assert two.near.stop() == 0
    assert two.far.stop() == 0
    states = [each["state"] for each in two.lines(two.near, "link")]
    assert states[-2:] == ["up", "stopped"]


def test_without_tables_of_the_network_nothing_of_it_is_imported(two: Two) -> None:
    two.write(two.near, **{key: None for key in two.given[two.near.folder] if "to-far" in key})
    program = "import sys; from shmbroker.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "run", str(two.near.folder)]
    with subprocess.Popen(command) as process:
        two.near.becomes("live")
        assert "zmq" not in Path(f"/proc/{process.pid}/maps").read_text()
        process.terminate()
    assert read(two.near_vhost) is None


def test_what_a_reload_does_not_change_goes_on(two: Two) -> None:
    near, far = two.started()
    near.declare_queue("second", slots=64)
    far.declare_queue("second", slots=64)
    up = two.becomes("up")
    second = {"bridges.second.queue": "second", "bridges.second.to": f"127.0.0.1:{two.port}"}
    two.write(two.near, **second)
    assert "bridges.second.queue" in two.reload(two.near)["applied"]
    two.becomes("up", "second")
    near.queue("second").publish(b"by the new one")
    assert far.queue("second").receive(timeout=PATIENCE) == b"by the new one"
    two.write(two.near, **{"bridges.second.forwarding-address": TARGET})
    two.reload(two.near)
    near.queue("second").publish(b"elsewhere")
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"elsewhere"
    two.write(two.near, **dict.fromkeys([*second, "bridges.second.forwarding-address"]))
    two.reload(two.near)
    until = time.monotonic() + PATIENCE
    while "second" in names(two) and time.monotonic() < until:
        time.sleep(0.01)
    assert names(two) == ["to-far"]
    assert two.link()["since"] == up["since"], "nobody has touched it"
    until = time.monotonic() + PATIENCE
    while near.queue("second").gates() and time.monotonic() < until:
        time.sleep(0.01)
    assert not near.queue("second").gates(), "the queue is everybody's again"


def names(two: Two) -> list[str]:
    table = read(two.near_vhost)
    return [each.text["name"] for each in table.rows] if table is not None else []


def test_other_credentials_by_a_reload_at_both_ends(two: Two) -> None:
    near, far = two.started()
    two.becomes("up")
    for run in (two.far, two.near):
        two.write(run, **{"credentials.site.password": "quite another password"})
        two.reload(run)
    near.queue(SOURCE).publish(b"with the new one")
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"with the new one"


def test_a_reload_of_one_end_only_is_refused_by_the_other(two: Two) -> None:
    two.started()
    two.becomes("up")
    two.write(two.near, **{"credentials.site.password": "quite another password",
                           "bridges.to-far.refused-retry-interval": "100ms"})  # fmt: skip
    two.reload(two.near)
    assert "credentials" in two.becomes("refused")["reason"]
    two.write(two.near, **{"credentials.site.password": PASSWORD})
    two.reload(two.near)
    two.becomes("up")


def test_stop_and_start_by_the_command(two: Two) -> None:
    near, far = two.started()
    two.becomes("up")
    verb = ["link", "stop", "to-far", "--vhost", two.near_vhost]
    assert run_cli(verb).exit_code == 0
    assert two.link()["state"] == "stopped"
    near.queue(SOURCE).publish(b"waits")
    listed = json.loads(run_cli(["link", "list", "--json", "--vhost", two.near_vhost]).stdout)
    assert (listed[0]["name"], listed[0]["state"], listed[0]["lag"]) == ("to-far", "stopped", 1)
    assert 0 <= listed[0]["oldest_seconds"] < PATIENCE
    two.reload(two.near)
    assert two.link()["state"] == "stopped", "until it is started"
    assert run_cli(["link", "start", "to-far", "--vhost", two.near_vhost]).exit_code == 0
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"waits"
    two.becomes("up")
    assert run_cli(["link", "stop", "nobody", "--vhost", two.near_vhost]).exit_code == 1
    table = run_cli(["link", "list", "--vhost", two.near_vhost]).stdout
    assert "to-far" in table
    assert "LAG" in table


def test_one_that_was_stopped_and_removed_runs_when_it_is_there_again(two: Two) -> None:
    two.started()
    two.becomes("up")
    assert run_cli(["link", "stop", "to-far", "--vhost", two.near_vhost]).exit_code == 0
    given = two.given[two.near.folder]
    is_there = {key: each for key, each in given.items() if key.startswith("bridges.")}
    two.write(two.near, **dict.fromkeys(is_there))
    two.reload(two.near)
    two.write(two.near, **is_there)
    two.reload(two.near)
    two.becomes("up")


def test_a_table_of_a_broker_that_hangs_is_read(two: Two) -> None:
    two.started()
    two.becomes("up")
    assert two.near.process is not None
    two.near.process.stop()
    listed = run_cli(["link", "list", "--json", "--vhost", two.near_vhost])
    assert json.loads(listed.stdout)[0]["state"] == "up"
    two.near.process.go_on()


def test_times_of_append_to_confirm_are_counted(two: Two) -> None:
    near, _ = two.started()
    two.becomes("up")
    near.queue(SOURCE).publish_many([b"x"] * 500, timeout=PATIENCE)
    until = time.monotonic() + PATIENCE
    while two.link()["confirmed"] < 500 and time.monotonic() < until:
        time.sleep(0.01)
    listed = json.loads(run_cli(["link", "list", "--json", "--vhost", two.near_vhost]).stdout)[0]
    assert listed["confirmed"] == listed["append_confirm_ns"]["messages"] == 500
    assert 1_000 < listed["append_confirm_ns"]["p50"] < 30e9


def test_a_queue_that_is_not_there_yet(two: Two) -> None:
    for each in (two.far, two.near):
        each.start().becomes("live")
    near, far = two.connected("near"), two.connected("far")
    until = time.monotonic() + PATIENCE
    while SOURCE not in two.link()["reason"] and time.monotonic() < until:
        time.sleep(0.01)
    near.declare_queue(SOURCE).publish(b"early")
    while TARGET not in two.link()["reason"] and time.monotonic() < until:
        time.sleep(0.01)
    far.declare_queue(TARGET)
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"early"
    two.becomes("up")
    lines = [each["state"] for each in two.lines(two.near, "link") if "state" in each]
    assert len(lines) <= 2, "none for an attempt"


def test_a_failover_begins_the_same_links_at_the_backup(two: Two) -> None:
    near, far = two.started()
    near.queue(SOURCE).publish(b"by the first")
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"by the first"
    backup = made(two.near.folder.parent / "second", two.near_vhost, {
        **two.given[two.near.folder], "instance.name": "second", "ha.role": "backup",
    })  # fmt: skip
    two.opened.callback(backup.kill)
    backup.start().becomes("passive")
    two.near.kill()
    backup.becomes("live")
    near.queue(SOURCE).publish(b"by the second")
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"by the second"
    two.becomes("up")
    two.near.start().becomes("live")
    backup.becomes("passive")
    near.queue(SOURCE).publish(b"after failback")
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"after failback"
    assert far.queue(TARGET).statistics().published == 3


def test_an_address_that_is_taken_is_listened_to_when_it_is_free(two: Two) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", two.port))
        taken.listen()
        two.far.start().becomes("live")
        two.near.start().becomes("live")
        until = time.monotonic() + PATIENCE
        while not two.lines(two.far, "acceptor") and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.5)
        assert [each["state"] for each in two.lines(two.far, "acceptor")] == ["cannot listen"]
        taken.shutdown(socket.SHUT_RDWR)  # the processes of this test have it, too
    near, far = two.connected("near"), two.connected("far")
    far.declare_queue(TARGET)
    near.declare_queue(SOURCE).publish(b"at last")
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"at last"


def test_programs_on_other_hosts_connect_to_an_acceptor(two: Two) -> None:
    """In the first acceptor's place: one for programs, by the same credentials."""
    both = {"acceptors.site.roles": ["peering", "client"],
            "credentials.site.role": ["peering", "client"]}  # fmt: skip
    two.write(two.far, **both)
    _, far = two.started()
    url = f"tcp://127.0.0.1:{two.port}?prefer-shared-memory=false"
    with shmbroker.connect(url, user="site", password=PASSWORD) as program:
        program.queue(TARGET).publish(b"from afar")
        assert far.queue(TARGET).receive(timeout=PATIENCE) == b"from afar"
        far.queue(TARGET).publish(b"back")
        assert program.queue(TARGET).receive(timeout=PATIENCE) == b"back"


def spooled(folder: Path) -> list[hlog.Interval]:
    files = sorted((folder / "spool").glob("*.hlog"))
    lines = [line for file in files for line in file.read_text().splitlines(keepends=True)]
    return [each for each in hlog.read(lines) if isinstance(each, hlog.Interval)]


def test_the_times_of_a_link_are_spooled_once(two: Two) -> None:
    """Also when the table of links is made anew, and by the next live."""
    two.write(two.near, **{"spool.path": "spool", "spool.interval": "50ms",
                           "spool.parquet": False})  # fmt: skip
    near, far = two.started()
    target = far.queue(TARGET)

    def ship(messages: int) -> None:
        near.queue(SOURCE).publish_many([b"x"] * messages, timeout=PATIENCE)
        for _ in range(messages):
            target.receive(timeout=PATIENCE)
        until = time.monotonic() + PATIENCE
        while len(near.queue(SOURCE)) and time.monotonic() < until:
            time.sleep(0.005)

    ship(30)
    near.declare_queue("second", slots=64)
    second = {"bridges.second.queue": "second", "bridges.second.to": f"127.0.0.1:{two.port}"}
    two.write(two.near, **second)
    two.reload(two.near)
    ship(20)
    assert two.near.stop() == 0
    near.close()
    two.near.start().becomes("live")
    near = two.connected("near")
    two.becomes("up")
    ship(10)
    assert two.near.stop() == 0
    found = spooled(two.near.folder)
    assert {(each.queue, each.kind) for each in found} == {(SOURCE, "append-confirm")}
    assert sum(each.histogram.total for each in found) == 60
    assert max(each.histogram.maximum for each in found) < PATIENCE * 1e9
