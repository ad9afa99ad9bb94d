"""A queue that needs a broker and has none is critical wherever its state is shown."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.paging.pager import Pager
from tests.cli.command import PATIENCE_SECONDS, Shell, eventually
from tests.cli.test_instance import becomes, create
from tests.support.host import journaling

Start = Callable[..., subprocess.Popen[bytes]]


def levels(shell: Shell, queue: str) -> dict[str, Any]:
    """What each verb says of a queue, as far as it is critical."""
    found = {
        "check queue": shell("check", "queue", queue, "--json").json["level"] == "critical",
        "check vhost": shell("check", "vhost", "--json").json["level"] == "critical",
        "doctor": any(
            queue in each["subject"] and shell.vhost in each["subject"]
            for each in shell("doctor", "--json").json
            if each["severity"] == "error"
        ),
    }
    top = shell.does("top", "--once", "--interval", "1ms", "--json").json["queues"]
    listed = shell.does("queue", "list", "--json").json
    stated = shell.does("queue", "stat", queue, "--json").json
    for verb, fields in (("top", top), ("queue list", listed), ("queue stat", [stated])):
        found[verb] = any(each["critical"] for each in fields if each["name"] == queue)
    return found


def all_say(shell: Shell, queue: str, is_critical: bool) -> bool:
    found = levels(shell, queue)
    assert set(found.values()) == {is_critical}, found
    return True


def test_a_durable_queue(shell: Shell, tmp_path: Path) -> None:
    shell.does("queue", "declare", "orders", "--durable")
    shell.does("queue", "declare", "plain")
    assert all_say(shell, "orders", True)
    assert "CRITICAL" not in shell("check", "queue", "plain").out
    for verb in (
        ["top", "--once", "--interval", "1ms"],
        ["queue", "list"],
        ["queue", "stat", "orders"],
    ):
        assert "no broker writes its journal" in shell.does(*verb).out
    with journaling(shell.vhost, tmp_path / "journal"):
        assert all_say(shell, "orders", False)
    assert all_say(shell, "orders", True)


def test_a_queue_that_pages(shell: Shell, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        with Pager(broker, tmp_path / "pages"):
            broker.declare_queue("orders", when_full="page")
            assert all_say(shell, "orders", False)
        assert all_say(shell, "orders", True)
        assert "no broker pages it" in shell("check", "queue", "orders").out


def test_a_schedule(shell: Shell, start: Start) -> None:
    shell.does("queue", "declare", "orders")
    shell.does("pub", "orders", "later", "--deliver-after", "1h")
    assert all_say(shell, "orders", True)
    assert "no process moves its scheduled messages" in shell("check", "queue", "orders").out
    repairer = start("run", "--vhost", shell.vhost, stderr=subprocess.PIPE)
    eventually(lambda: shell("check", "queue", "orders").code == 0)
    assert all_say(shell, "orders", False)
    repairer.kill()
    repairer.wait()
    assert shell("check", "queue", "orders").code == 2


@pytest.mark.parametrize("verb", ["stop", "kill"])
def test_a_broker_that_ended(shell: Shell, start: Start, tmp_path: Path, verb: str) -> None:
    folder = create(shell, tmp_path / "one", "live")
    process = start("run", str(folder), stderr=subprocess.PIPE)
    assert becomes(shell, folder, "live")["critical"] == {}
    shell.does("queue", "declare", "orders", "--durable")
    shell.does(verb, str(folder), "--timeout", "60s")
    process.wait(PATIENCE_SECONDS)
    answer = shell("status", str(folder))
    assert answer.code == 1
    assert "CRITICAL: queue orders: no broker writes its journal" in answer.out
    assert "orders" in shell("status", str(folder), "--json").json["critical"]
    assert all_say(shell, "orders", True)
