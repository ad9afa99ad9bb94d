"""What a scrape of a vhost and of a broker says, whatever state the broker is in."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import shmbroker
from shmbroker.cli.metrics import vhost as of_vhost
from shmbroker.cli.metrics.exposition import text, written
from shmbroker.cli.metrics.sheet import Sheet
from tests.cli.command import Shell, eventually
from tests.cli.metrics.samples import Samples

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def live(shell: Shell, start: Start, tmp_path: Path) -> Path:
    folder = tmp_path / "live"
    shell.does("create", str(folder), "--vhost", shell.vhost, "--set", "store.segment=1MiB")
    start("run", str(folder))
    shell.does("status", str(folder), "--wait", "live", "--timeout", "60s")
    shell.does("queue", "declare", "orders", "--durable")
    shell.does("pub", "orders", "--lines", stdin=b"a\nb\nc\n")
    return folder


def process_of(shell: Shell, folder: Path) -> int:
    pid: int = shell.does("status", str(folder), "--json").json["process"]
    return pid


def test_a_live(shell: Shell, live: Path) -> None:
    samples = Samples(shell.does("metrics", "show", str(live)).out)
    assert samples.of("up", vhost=shell.vhost, broker="live") == 1
    assert samples.of("stopped") == 0
    assert samples.state("broker_state") == "live"
    assert samples.state("broker_role", "role") == "live"
    assert samples.of("broker_epoch") >= 1
    assert samples.of("journal_turn_age_seconds") >= 0
    assert samples.of("journal_segments") >= 1
    assert samples.of("journal_bytes") >= 1 << 20
    assert samples.of("store_free_bytes") > 0
    assert samples.of("vhost_journal_written") == samples.of("vhost_paged_by_broker") == 1
    assert samples.of("vhost_queues") == samples.of("vhost_durable_queues") == 1
    assert samples.of("vhost_participants", state="live") >= 1
    assert 0 < samples.of("vhost_arena_used_bytes") <= samples.of("vhost_arena_bytes")
    assert samples.of("queue_depth", queue="orders", vhost=shell.vhost) == 3
    assert samples.of("queue_oldest_age_seconds", queue="orders") > 0


def test_a_stopped_and_a_dead_broker(shell: Shell, live: Path) -> None:
    pid = process_of(shell, live)
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: Samples(text(live)).of("stopped") == 1)
        samples = Samples(text(live))
        assert samples.of("up") == 1
        assert samples.of("queue_depth", queue="orders") == 3
    finally:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: Samples(text(live)).of("up") == 0)
    samples = Samples(text(live))
    assert samples.state("broker_state") == "not running"
    assert samples.of("vhost_journal_written") == 0
    assert samples.of("queue_depth", queue="orders") == 3
    assert not samples.all("journal_turn_age_seconds")


def test_a_backup_whose_live_is_elsewhere_has_no_vhost(
    shell: Shell, tmp_path: Path
) -> None:  # fmt: skip
    folder = tmp_path / "backup"
    shell.does("create", str(folder), "--vhost", f"{shell.vhost}-other", "--role", "backup")
    samples = Samples(text(folder))
    assert samples.of("up") == samples.of("vhost_up") == 0
    assert not samples.all("queue_depth")


def test_queues_beyond_the_limit_are_summed(vhost_name: str) -> None:
    with shmbroker.connect(f"shm://{vhost_name}", create=True) as broker:
        for number in range(5):
            broker.declare_queue(f"queue-{number}").publish(b"x")
        for _ in range(2):
            broker.temporary_queue().publish(b"x")
        samples = Samples(text(vhost_name, queues_max=2))
        for name, depth in {"queue-0": 1, "queue-1": 1, "(others)": 3, "(temporary)": 2}.items():
            assert samples.of("queue_depth", queue=name) == depth
            assert samples.of("queue_published_total", queue=name) == depth
        assert len(samples.all("queue_depth")) == 4
        assert samples.of("queue_oldest_age_seconds", queue="(others)") > 0
        assert samples.of("vhost_queues") == 7


def test_histograms(vhost_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_vhost, "HISTOGRAMS_MAX", 1)
    with shmbroker.connect(f"shm://{vhost_name}", create=True) as broker:
        queues = [broker.declare_queue(f"queue-{number}") for number in range(3)]
        for queue in queues:
            queue.latency(True)
            for _ in range(10):
                queue.publish(b"x")
                queue.get(timeout=0).ack()
        samples = Samples(text(vhost_name))
        expected = queues[0].histograms()["publish-take"]
        labels = {"queue": "queue-0"}
        assert samples.of("queue_wait_seconds_count", **labels) == expected.total == 10
        assert samples.of("queue_wait_seconds_bucket", le="+Inf", **labels) == 10
        below = sum(count for highest, count in expected if highest <= 50_000)
        assert samples.of("queue_wait_seconds_bucket", le="5e-05", **labels) == below
        total = sum(highest * count for highest, count in expected) / 1e9
        assert samples.of("queue_wait_seconds_sum", **labels) == pytest.approx(total)
        assert samples.of("queue_hold_seconds_count", **labels) == 10
        assert samples.of("queue_wait_seconds_count", queue="(others)") == 20
        assert len(samples.all("queue_wait_seconds_count")) == 2


def test_errors(vhost_name: str) -> None:
    with shmbroker.connect(f"shm://{vhost_name}", create=True) as broker:
        assert Samples(text(vhost_name)).of("vhost_error_kinds") == 0
        broker.declare_queue("dead", slots=2)
        orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="dead")
        for _ in range(3):
            orders.publish(b"x")
        for _ in range(2):
            orders.get(timeout=0).reject()
        orders.get(timeout=0).give_back()
        samples = Samples(text(vhost_name))
        assert samples.of("vhost_error_kinds") == 1
        last_at = broker.errors()[0].last_at / 1e9
        assert samples.of("vhost_last_error_timestamp_seconds") == pytest.approx(last_at)
        assert samples.of("queue_set_aside", queue="orders") == 1


def test_names_of_queues_are_escaped(vhost_name: str) -> None:
    name = 'a "name" \\ {with} all'
    with shmbroker.connect(f"shm://{vhost_name}", create=True) as broker:
        broker.declare_queue(name)
        assert Samples(text(vhost_name)).of("queue_depth", queue=name) == 0


def test_what_is_not_there(shell: Shell, tmp_path: Path) -> None:
    for place in (str(tmp_path), "nobody-has-this"):
        answer = shell("metrics", "show", place)
        assert (answer.code, place in answer.said) == (1, True)


def test_it_is_written_as_prometheus_client_writes_it() -> None:
    sheet = Sheet()
    for name in ("plain", 'odd "name"\\ of\ntwo lines', "ü"):
        for value in (0, 0.5, 3, 12_345_678, 1e300, float("inf"), float("nan"), -2):
            sheet.put("queue_depth", value, "vhost", name)
        sheet.put("queue_published_total", 7, "vhost", name)
        sheet.put_buckets("queue_wait_seconds", [("0.1", 1), ("+Inf", 2)], 0.3, "vhost", name)

    class Given(Collector):
        def collect(self) -> Iterable[Metric]:
            return sheet.families()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Given())
    assert written(sheet.families()) == generate_latest(registry).decode()
