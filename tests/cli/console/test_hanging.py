"""A console beside a broker that hangs, is dead, is passive, ends, or comes back."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from shmbroker.cli.console import supervised
from shmbroker.cli.console.server import running
from shmbroker.cli.console.supervised import Supervised, set_by
from shmbroker.cli.instance import setting_of
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.config.config import load
from tests.cli.command import PATIENCE_SECONDS, eventually
from tests.cli.console.conftest import Site
from tests.cli.console.visitor import Visitor, refused
from tests.cli.test_instance import becomes

PATHS = [
    "/api/state", "/api/tree", "/api/queues", "/api/participants", "/api/ha", "/api/cluster",
    "/api/links", "/api/errors", "/api/log", "/api/doctor", "/api/exchanges", "/api/patterns", "/",
    "/api/session",
]  # fmt: skip


def reads_everything(visitor: Visitor, depth: int = 1) -> None:
    for path in PATHS:
        assert visitor.get(path).status == 200, path
    assert visitor.reads("/api/queue", name="orders")["depth"] == depth
    [row] = visitor.reads("/api/browse", queue="orders")["messages"]
    whole = visitor.reads("/api/message", queue="orders", position=row["position"])
    assert whole["excerpt"] == "coffee"


def test_it_reads_while_the_broker_hangs_and_when_it_is_dead(own_site: Site) -> None:
    own_site.start()
    own_site.shell.does("queue", "declare", "orders", "--durable")
    own_site.shell.does("pub", "orders", "coffee")
    admin = own_site.visitor()
    own_site.signal(signal.SIGSTOP)
    reads_everything(admin)
    assert not admin.reads("/api/ha")["told"]["answers"]
    refused(admin.post("/api/do/publish", {"queue": "orders", "body": "x"}), 504, "unconfirmed")

    own_site.signal(signal.SIGKILL)
    eventually(lambda: admin.reads("/api/state")["mode"] == "dead")
    refused(admin.post("/api/do/purge", {"queue": "orders"}), 409, "dead")
    reads_everything(admin, 2)  # with the one that is not confirmed
    eventually(lambda: admin.reads("/api/state")["critical"] == 1)


def test_the_next_start_takes_its_place_and_a_stop_ends_it(own_site: Site) -> None:
    own_site.start()
    first = own_site.pid
    own_site.signal(signal.SIGKILL)
    assert own_site.pid == first
    own_site.start()
    eventually(lambda: own_site.pid != first)
    told = own_site.shell.does("console", "status", str(own_site.folder), "--json").json
    assert (told["process"], told["url"]) == (own_site.pid, own_site.url)
    eventually(lambda: not Path(f"/proc/{first}").exists())  # also for whoever waits for its end
    last = own_site.pid
    own_site.stop()
    eventually(lambda: not Path(f"/proc/{last}").exists())
    assert own_site.shell("console", "status", str(own_site.folder)).code == 1


def test_it_is_begun_again_if_it_is_killed(own_site: Site) -> None:
    own_site.start()
    first = own_site.pid
    os.kill(first, signal.SIGKILL)

    def another() -> bool:
        answer = own_site.shell("console", "status", str(own_site.folder), "--json")
        return answer.code == 0 and answer.json["process"] != first

    eventually(another)
    assert own_site.visitor().reads("/api/state")["mode"] == "live"


def test_it_is_begun_again_if_there_was_no_room_for_its_process(
    own_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, failed = subprocess.Popen, threading.Event()

    def begins_the_second_time(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        if not failed.is_set():
            failed.set()
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return begins(*words, **options)

    monkeypatch.setattr(supervised, "PAUSE", 0.01)
    config, _ = load(own_site.folder)
    beside = Supervised(own_site.folder, {}, Log(config.log, config.name))
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", begins_the_second_time)
        beside.begin()
        eventually(lambda: running(own_site.folder))
    beside.end()
    assert [each["why"] for each in own_site.lines("console failed")] == [
        "the system: Resource temporarily unavailable"
    ]


def test_one_that_cannot_start_is_told_of_once(
    own_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, tries = subprocess.Popen, SimpleQueue[None]()

    def begins_counted(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        tries.put(None)
        return begins(*words, **options)

    monkeypatch.setattr(supervised, "PAUSE", 0.01)
    config, _ = load(own_site.folder)
    beside = Supervised(own_site.folder, {"no.such": 1}, Log(config.log, config.name))
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", begins_counted)
        beside.begin()
        for _ in range(3):
            tries.get(timeout=PATIENCE_SECONDS)
    beside.end()
    [line] = own_site.lines("console failed")
    assert f"shmbroker console run {own_site.folder}" in line["why"]


def test_it_is_given_what_the_broker_was_given() -> None:
    flags: dict[str, object] = {
        "sql.password": {"env": "PW"},
        "credentials.apps.accept-also": [{"file": "former"}],
        "ha.role": "backup",
        "instance.name": "caf\u00e9 \U0001f980",
        "instance.queues": ["a", "b"],
        "queues.of": {"orders.#": {"ttl": 5}},
        "ha.allow-failback": False,
        "console.listen": "[::1]:0",
    }
    assert dict(map(setting_of, set_by(flags))) == flags


def test_there_is_one_for_each_instance(own_site: Site) -> None:
    own_site.start()
    answer = own_site.shell("console", "run", str(own_site.folder))
    assert answer.code == 1
    assert "runs already" in answer.said


def test_a_passive_one_shows_its_cluster_and_no_queues(own_site: Site, tmp_path: Path) -> None:
    shell = own_site.shell
    store = str(own_site.folder / "data")
    backup = Site(shell, tmp_path / "backup")
    own_site.start()
    others = json.dumps([f"one={own_site.url}"])
    shell.does(
        "create", str(backup.folder), "--vhost", shell.vhost, "--role", "backup", "--store", store,
        "--set", "store.segment=1MiB", "--set", "console.listen=127.0.0.1:0",
        "--set", f"console.others={others}",
        "--set", "ha.failover-on-shutdown=true",
        "--set", 'connectors.here.uri="tcp://127.0.0.1:61616"',
    )  # fmt: skip
    try:
        backup.start("passive")
        shell.does("queue", "declare", "orders")
        shell.does("pub", "orders", "coffee")
        admin = backup.visitor()
        tree = admin.reads("/api/tree")
        assert [each["name"] for each in tree["children"]] == ["cluster"]
        assert [each["name"] for each in tree["children"][0]["children"][0]["children"]] == ["here"]
        assert admin.reads("/api/state")["mode"] == "passive"
        for path in ("/api/queues", "/api/browse?queue=orders", "/api/queue?name=orders",
                     "/api/errors"):  # fmt: skip
            refused(admin.get(path), 403, "passive")
        for verb in ("publish", "purge", "move"):
            answer = admin.post(f"/api/do/{verb}", {"queue": "orders", "body": "x"})
            refused(answer, 403, "passive")
            assert answer.json["console"] == own_site.url
        assert shell.bodies("orders") == ["coffee"]
        assert becomes(shell, backup.folder, "passive")["state"] == "passive"

        own_site.signal(signal.SIGKILL)  # what was passive takes over, and its console shows it
        becomes(shell, backup.folder, "live")
        eventually(lambda: admin.reads("/api/state")["mode"] == "live")
        [row] = admin.reads("/api/browse", queue="orders")["messages"]
        assert row["excerpt"] == "coffee"
    finally:
        backup.close()
