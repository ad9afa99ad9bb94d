"""Peers that are servers: started, driven, told from who does not sync, and ended, all of it."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from shmbroker.perf.harness.contest import Contest
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.registry import registry
from shmbroker.perf.harness.run import run
from shmbroker.perf.harness.task import Mode, Task
from shmbroker.perf.machine import debian
from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.machine.program import ProgramEnded
from shmbroker.perf.machine.syncs import syncs_during
from shmbroker.perf.machine.workspace import SHM
from shmbroker.perf.peers.mp_pipe import MpPipe
from shmbroker.perf.peers.ours_durable import OursDurable
from shmbroker.perf.peers.redis_stream import Redis
from shmbroker.perf.scenarios.compare import figures_of
from shmbroker.perf.scenarios.durable.__main__ import main
from shmbroker.perf.scenarios.durable.contender import NotWhatWasSent, consume, made
from shmbroker.perf.scenarios.topologies import TOPOLOGIES
from shmbroker.perf.server.connection import Connection
from shmbroker.perf.server.server import Server

SERVERS = [peer for peer in registry().values() if isinstance(peer, Server)]
SMALL = [server for server in SERVERS if server.name in (Redis.name, OursDurable.name)]
TRIED = SERVERS if os.environ.get("SHMBROKER_LONG") else SMALL
"""RabbitMQ and ActiveMQ take ten seconds to start, and minutes to install."""
SIZES = (8, 64, 1024, 1 << 20)


def by_name(server: Server) -> str:
    return server.name


@pytest.fixture(scope="module", params=TRIED, ids=by_name)
def server(request: pytest.FixtureRequest) -> Server:
    chosen: Server = request.param
    chosen.install()
    return chosen


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of what was made here: tests of other processes have servers as well."""
    made: list[str] = []
    make = tempfile.mkdtemp

    def recorded(*args: Any, **named: Any) -> str:
        folder: str = make(*args, **named)
        made.append(Path(folder).name)
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", recorded)
    yield
    assert not list(tmp_path.glob("shmbroker-perf-*"))
    left = [path.name for path in SHM.iterdir()]
    assert not [name for name in left if any(each in name for each in made)]


def test_what_is_published_is_taken_once_and_in_order(server: Server, tmp_path: Path) -> None:
    with server.hosted(tmp_path) as running:
        connection = server.connect(running.place, "first")
        other = server.connect(running.place, "second")
        for size in SIZES:
            singly, together = made(3, size), made(5 if size > 1024 else 3000, size)
            for body in singly:
                connection.publish(body)
            other.publish(b"another queue")
            connection.publish_many(together)
            consume(connection, singly + together)
            assert other.take(5) == [b"another queue"]
        connection.publish_many([])
        connection.close()
        other.close()
        assert Path(f"/proc/{running.pid}").exists()
    assert not Path(f"/proc/{running.pid}").exists()


def test_every_confirm_has_a_sync(server: Server, tmp_path: Path) -> None:
    with server.hosted(tmp_path) as running:
        connection = server.connect(running.place, "queue")
        singly, together = made(20, 64), made(500, 64)

        def one_by_one() -> None:
            for body in singly:
                connection.publish(body)

        assert syncs_during(running.pid, one_by_one) >= len(singly)
        assert syncs_during(running.pid, lambda: connection.publish_many(together)) >= 1
        consume(connection, singly + together)
        connection.close()


class ForgetfulRedis(Redis):
    sync = "no"


class BrokenRedis(Redis):
    sync = "sometimes"


def test_a_server_that_confirms_without_a_sync_is_found_out(tmp_path: Path) -> None:
    redis = ForgetfulRedis()
    redis.install()
    with redis.hosted(tmp_path) as running:
        connection = redis.connect(running.place, "queue")
        bodies = made(20, 64)

        def one_by_one() -> None:
            for body in bodies:
                connection.publish(body)

        assert syncs_during(running.pid, one_by_one) < len(bodies)
        connection.close()


def test_a_server_takes_part_in_the_contest(server: Server) -> None:
    def task(topology: str, mode: Mode) -> Task:
        return Task(TOPOLOGIES[topology], 64, mode)

    with server.running():
        run(server, Plan(task("ping-pong", "single"), groups=1, singles=5))
        for topology in ("one-to-one", "one-to-three-competing"):
            record = run(server, Plan(task(topology, "batch"), count=256))
            assert record.figures["messages_per_s"] > 0
    assert not server.supports(task("one-to-three-broadcast", "batch"))


def test_a_server_that_does_not_start_leaves_the_contest() -> None:
    contest = Contest(
        topologies=[TOPOLOGIES["one-to-one"]],
        sizes=[64],
        modes=["single", "batch"],
        peers=[MpPipe(), BrokenRedis()],
        rounds=1,
        target_s=0.01,
        tell=lambda text: None,
    )
    (case,) = contest.cases()
    contest.hold(case)
    pipe, broken = case.entries
    assert pipe.medians()
    assert len(broken.failures) == 1
    assert "appendfsync" in broken.failures[0]


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ProgramEnded, match="appendfsync"), BrokenRedis().hosted(tmp_path):
        pass


@pytest.mark.usefixtures("conditions_are_known")
def test_the_whole_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--peer", "redis", "--size", "64", "--rounds", "1", "--seconds", "10ms"]
    asked += ["--singles", "20"]
    written, page = tmp_path / "figures.json", tmp_path / "page.html"
    options = ["--folder", str(tmp_path), "--json", str(written), "--html", str(page)]
    assert main([*asked, *options]) in (0, 1)
    told = json.loads(written.read_text())
    document = told["scenarios"]["durable"]
    contenders = {each["name"]: each for each in document["contenders"]}
    assert contenders.keys() == {"bare disk", "shmbroker-durable", "redis"}
    for name in ("shmbroker-durable", "redis"):
        assert contenders[name]["syncs_before_it_confirms"] is True, contenders[name]
        assert not contenders[name]["failures"]
        assert contenders[name]["sizes"]["64"]["median_ns"] > 0
    assert len(document["verdicts"]) == 3
    assert ("redis, 64 B", "p50_ns") in figures_of(told)
    assert page.read_text().count("data:image/png") == 2
    said = capsys.readouterr().out
    assert "the best that syncs" in said
    assert sorted(tmp_path.iterdir()) == [written, page]


def test_what_is_lost_doubled_or_out_of_order_is_noticed(tmp_path: Path) -> None:
    sent = made(4, 64)
    for arrived in (sent[1:] + sent[:1], sent[:1] + sent[:3], [*sent[:3], b"?"]):
        with pytest.raises(NotWhatWasSent, match=r"message \d of 4"):
            consume(Feigned(arrived), sent)
    consume(Feigned(sent), sent)


class Feigned(Connection):
    """Gives what it was made with."""

    def __init__(self, bodies: list[bytes]) -> None:
        self._bodies = bodies

    def publish(self, body: bytes) -> None: ...

    def publish_many(self, bodies: Sequence[bytes]) -> None: ...

    def take(self, count: int) -> list[bytes]:
        taken, self._bodies = self._bodies[:2], self._bodies[2:]
        return taken

    def close(self) -> None: ...


def test_a_program_dies_with_whoever_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from shmbroker.perf.machine.program import Program\n"
        f"program = Program(['sleep', '600'], Path({str(tmp_path / 'said')!r}))\n"
        "print(program.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = os.pidfd_open(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    assert select.select([child], [], [], 60)[0]
    os.close(child)


def test_who_is_not_root_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotInstalled, match="sudo apt-get install no-such-package"):
        debian.install("no-such-package")


def test_no_service_is_started_by_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(debian, "POLICY", policy)
    with debian.services_not_started():
        assert subprocess.run([policy]).returncode == 101
    assert not policy.exists()
    policy.write_text("somebody's")
    with debian.services_not_started():
        assert policy.read_text() == "somebody's"
    assert policy.exists()


def test_a_package_that_does_not_exist_is_not_installed() -> None:
    assert debian.version("no-such-package") == ""
