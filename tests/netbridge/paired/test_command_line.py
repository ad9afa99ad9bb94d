"""Both forms of configuration, as they are typed, and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import shmbroker
from shmbroker import ConnectionClosed
from shmbroker.cli.metrics.exposition import text as text_of
from shmbroker.ipc.base.trust import make_folder
from shmbroker.ipc.instance.status import RUN
from shmbroker.perf.machine.port import free_port
from tests.cli.command import PATIENCE_SECONDS, Shell
from tests.cli.metrics.samples import Samples
from tests.conftest import vhost_for_a_while
from tests.netbridge.paired.conftest import NAMES, PASSWORD, Made, reasons, waits
from tests.support.runs import Run
from tests.support.until import until

FILE = """
[instance]
arena = "16MiB"
[store]
segment = "1MiB"
[ha]
policy = "pair"
[ha.pair]
vhost = "/"
credentials = "pair"
primary-peer = "127.0.0.1:{}"
backup-peer = "127.0.0.1:{}"
failover-timeout = "1s"
[credentials.pair]
password = "correct horse battery staple"
role = "peering"
[credentials.programs]
password = "correct horse battery staple"
"""


class Shared(Run):
    """With the file of both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder / RUN)  # where the test looks for it
        self.process = None
        self.limited = {}
        self.before = lambda: None


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[tuple[Path, tuple[int, int], dict[str, Shared]]]:
    with ExitStack() as opened:
        ports = free_port(), free_port()
        file = tmp_path / "pair.toml"
        file.write_text(FILE.format(*ports))
        # a folder that has no name of a vhost gives its own
        runs = {
            name: Shared(tmp_path / opened.enter_context(vhost_for_a_while())) for name in NAMES
        }
        for run in runs.values():
            opened.callback(run.kill)
        yield file, ports, runs


def test_one_file_for_both(shared: tuple[Path, tuple[int, int], dict[str, Shared]]) -> None:
    file, ports, runs = shared
    for name, port, role in zip(NAMES, ports, ("--is-primary", "--is_backup"), strict=True):
        runs[name].start("--config", str(file), "--port", str(port), role, "1")
    waits(runs["one"], pair="active", peer="passive")
    waits(runs["two"], pair="passive", peer="active")
    shell = Shell("no-vhost")
    told = shell("status", str(runs["two"].folder), "--json").json
    assert (told["role"], told["pair"], told["peer"]) == ("backup", "passive", "active")
    assert 0 <= told["silence"] < 1
    assert told["data"] == "no data is replicated"
    text = shell("status", str(runs["one"].folder)).out
    assert "no data is replicated" in text
    assert "silence" in text
    one, two = (str(runs[name].folder) for name in NAMES)
    shown = shell("ha", "status", two, "--json").json
    assert (shown["role"], shown["pair"], shown["peer"]) == ("backup", "passive", "active")
    assert "no data is replicated" in shell("ha", "status", one).out
    assert [shell("ha", "status", each, "--is-primary").code for each in (one, two)] == [0, 1]
    assert [shell("ha", "status", two, "--expect", each).code for each in ("pass", "act")] == [0, 1]
    assert shell("ha", "status", one, "--all").code == 2
    assert [shell("check", "standby", each).code for each in (one, two)] == [0, 0]
    assert [shell("check", "ready", each).code for each in (one, two)] == [0, 2]
    samples = Samples(text_of(runs["two"].folder))
    assert samples.state("pair_state") == "passive"
    assert 0 <= samples.of("pair_silence_seconds") < PATIENCE_SECONDS
    refused = shell("ha", "reset", str(runs["one"].folder))
    assert (refused.code, "no conflict to reset" in refused.said) == (1, True)

    for _ in range(2):  # the second time as the folder remembers it
        with pytest.raises(ConnectionClosed, match="403 passive"):
            shmbroker.connect(f"tcp://127.0.0.1:{ports[1]}", user="programs", password=PASSWORD)
        assert shell("stop", str(runs["two"].folder), "--timeout", "30s").code == 0
        assert runs["two"].ends() == 0
        runs["two"].start()
        waits(runs["two"], pair="passive", peer="active", role="backup")
    assert [why for _, why in reasons(runs["one"])][:2] == ["started", "peer pending"]


@pytest.mark.parametrize(
    ("words", "more", "says"),
    [
        ([], "", "ha.pair.is-primary and ha.pair.is-backup: neither"),
        (["--is-primary", "--is-backup"], "", "ha.pair.is-primary and ha.pair.is-backup: both"),
        (["--is-primary", "1", "--is_backup", "1"], "", "is-backup: both"),
        (["--is-primary"], "backup-peer", "ha.pair.backup-peer is missing"),
        (["--is-backup", "1"], "primary-peer", "ha.pair.primary-peer is missing"),
        (["--is-backup"], "vhost", "ha.pair.vhost is missing"),
        (["--is-backup"], "policy", 'needs ha.policy = "pair"'),
    ],
)
def test_what_one_file_lacks(tmp_path: Path, words: list[str], more: str, says: str) -> None:
    file = tmp_path / "pair.toml"
    kept = [each for each in FILE.splitlines() if not more or not each.startswith(more)]
    file.write_text("\n".join(kept).format(1, 2))
    shell = Shell("no-vhost")
    folder = str(tmp_path / "one")
    answer = shell("run", folder, "--config", str(file), "--port", "5", *words)
    assert answer.code in (1, 2)
    assert says in answer.said


def test_a_port_that_is_not_that_of_its_peer(tmp_path: Path) -> None:
    file = tmp_path / "pair.toml"
    file.write_text(FILE.format(5555, 6666) + '[acceptors.a]\nuri="tcp://*:1"\n')
    shell = Shell("no-vhost")
    for port, role, own in ((5556, "primary", 5555), (5555, "backup", 6666)):
        words = ("--config", str(file), "--port", str(port), f"--is-{role}")
        answer = shell("run", str(tmp_path / role), *words)
        assert answer.code != 0, "programs only: the other one could not connect"
        assert f"--port is {port}, and ha.pair.{role}-peer has port {own}" in answer.said
        assert 'has "peering" among its roles' in answer.said


def test_two_files_and_their_errors(duo: Made, tmp_path: Path) -> None:
    two = duo(one={"ha.pair.is-primary": False})
    shell = Shell("no-vhost")
    folder = str(two["one"].folder)
    for words, says in (
        ((), "is-backup: neither"),
        (("--is-backup",), "ha.pair.primary-peer is missing"),
        (("--config", str(tmp_path / "other.toml")), "leave out --config"),
        (("--is-primary", folder), "is not a valid boolean"),
    ):
        answer = shell("run", folder, *words)
        assert answer.code != 0
        assert says in answer.said
    two["one"].start("--is-primary")
    assert waits(two["one"], pair="pending")["role"] == "primary"
    assert shell("run", "--port", "5").code == 2
    plain = Run(tmp_path / "plain", two.vhosts["one"], "live", {"store.path": "data"})
    for words in (("--port", "5"), ("--is-primary",)):
        assert "needs ha.policy" in shell("run", str(plain.folder), *words).said
    assert "is no broker of a pair" in shell("ha", "reset", str(plain.folder)).said


def test_a_bridge_runs_on_the_active_one_only(duo: Made) -> None:
    bridge: dict[str, object] = {
        "bridges.out.queue": "orders", "bridges.out.to": "tcp://127.0.0.1:9",
        "bridges.out.credentials": "pair",
    }  # fmt: skip
    two = duo(bridge).up()
    shell = Shell("no-vhost")

    def state(name: str) -> str:
        [link] = shell("link", "list", "--json", "--vhost", two.vhosts[name]).json
        return str(link["state"])

    until(lambda: state("one") != "stopped")  # it is begun behind the role
    assert state("two") == "stopped"
