"""`shmbroker queue latency`, and the spool of `shmbroker run`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import shmbroker
from shmbroker.ipc.spool import hlog
from tests.cli.command import Shell, eventually, line_of


def use(shell: Shell, times: int) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        queue = broker.queue("orders")
        for _ in range(times):
            queue.publish(b"a")
            queue.get().ack()


def test_on_is_recorded_and_off_is_not(shell: Shell) -> None:
    shell.does("queue", "declare", "orders")
    assert "nothing was recorded" in shell.does("queue", "latency", "orders").said
    assert "is recorded" in shell.does("queue", "latency", "orders", "on").said
    use(shell, 2)
    assert "is not recorded" in shell.does("queue", "latency", "orders", "off").said
    use(shell, 1)
    told = json.loads(shell.does("queue", "latency", "orders", "--json").out)
    assert list(told) == ["publish-take", "take-ack"]
    for each in told.values():
        assert list(each) == ["count", "overflow", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns",
                              "p99_99_ns", "max_ns"]  # fmt: skip
        assert each["count"] == 2
        assert each["p50_ns"] <= each["max_ns"]
    table = shell.does("queue", "latency", "orders").out.splitlines()
    assert table[0].split() == ["TIME", "COUNT", "P50", "P90", "P99", "P99.9", "P99.99", "MAX"]
    assert len(table) == 3
    assert (
        json.loads(shell.does("queue", "stat", "orders", "--json").out)["latency"]["samples"] == 2
    )


def test_a_range_that_there_cannot_be_is_a_usage_error(shell: Shell) -> None:
    shell.does("queue", "declare", "orders")
    assert shell("queue", "latency", "orders", "on", "--digits", "4").code == 2
    assert shell("queue", "latency", "orders", "sideways").code == 2
    answer = shell("queue", "latency", "orders", "on", "--highest", "11573d")
    assert answer.code == 1
    assert "digits" in answer.said


def test_who_repairs_writes_the_spool(shell: Shell, tmp_path: Path) -> None:
    shell.does("queue", "declare", "orders")
    shell.does("queue", "latency", "orders", "on")
    folder = tmp_path / "spool"
    options = ("--spool", str(folder), "--spool-interval", "50ms", "--spool-no-parquet")
    repairer = shell.start("run", *options, stderr=subprocess.PIPE)
    try:
        assert line_of(repairer.stderr).startswith(b"repairing")
        use(shell, 3)
        eventually(lambda: list(folder.glob("*.part")))
        again = shell("run", *options)
        assert again.code == 1
        assert "one is enough" in again.said
    finally:
        repairer.send_signal(signal.SIGTERM)
        assert repairer.wait() == 0
    counted = 0
    for path in folder.glob("*.hlog"):
        for each in hlog.read(path.read_text().splitlines()):
            if isinstance(each, hlog.Interval) and each.kind == "take-ack":
                counted += each.histogram.total
    assert counted == 3


def test_a_broker_in_a_folder_has_its_spool_in_its_configuration(
    shell: Shell, tmp_path: Path
) -> None:
    answer = shell("run", str(tmp_path), "--spool", str(tmp_path / "spool"))
    assert answer.code == 2
    assert "spool.path" in answer.said
