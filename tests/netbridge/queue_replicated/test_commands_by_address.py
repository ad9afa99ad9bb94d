"""The table of commands, each row as it is typed: brokers are named by their addresses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from shmbroker import Broker, ReplicaReadOnly
from shmbroker.cli.main import root
from shmbroker.perf.machine.port import free_port
from tests.cli.command import Shell
from tests.netbridge.queue_replicated.conftest import NAME, PASSWORD, Made, Two, content

USER = "programs"


class Far:
    """Two brokers, and a person elsewhere who knows the address of the copy."""

    def __init__(self, run: Two, shell: Shell, here: str) -> None:
        self.run, self.shell, self.b = run, shell, here
        self.there: Broker
        self.here: Broker

    def up(self) -> Far:
        self.there, self.here = self.run.up()
        return self

    @property
    def a(self) -> str:
        return self.run.peer

    def fails(self, *words: str, code: int = 1) -> str:
        answer = self.shell(*words)
        assert answer.code == code, answer
        return answer.said

    def start(self, *settings: str) -> list[str]:
        return ["queue", "declare", "--broker", self.b, "--start-replica", self.a, NAME, *settings]

    @property
    def replicate(self) -> list[str]:
        return ["ha", "replicate", "-b", self.b, self.a, NAME]


Between = Callable[..., Far]


@pytest.fixture
def far(two: Made, vhost: str) -> Between:
    def made(
        original: dict[str, object] | None = None, copy: dict[str, object] | None = None
    ) -> Far:
        port = free_port()
        programs: dict[str, object] = {
            "acceptors.programs.uri": f"tcp://127.0.0.1:{port}",
            "acceptors.programs.roles": ["client"],
            f"credentials.{USER}.password": PASSWORD,
        }
        shell = Shell(vhost)
        shell.environment |= {"SHMBROKER_USER": USER, "SHMBROKER_PASSWORD": PASSWORD}
        return Far(two(original, programs | (copy or {})), shell, f"127.0.0.1:{port}")

    return made


@pytest.mark.parametrize("side", ["original", "copy"])
def test_ha_queue_replication(far: Between, side: str) -> None:
    off: dict[str, object] = {"ha.queue-replication": False}
    found = far(**{side: off}).up()
    found.there.declare_queue(NAME)
    found.here.declare_queue(NAME).publish(b"its own")
    assert f"ha.queue-replication is false on {side}" in found.fails(*found.replicate)
    assert [each[1] for each in content(found.here.queue(NAME))] == [b"its own"]


def test_queue_declare_start_replica(far: Between) -> None:
    found = far().up()
    original = found.there.declare_queue(NAME, slots=64)
    original.publish(b"one")
    said = found.shell.does(*found.start("--slots", "4096")).said
    assert said == f"queue '{NAME}' follows the one of {found.a}\n"
    found.run.equal(original, found.here.queue(NAME))
    assert found.here.queue(NAME).slots == 4096, "settings of A are not copied"
    assert "exists: make it follow by shmbroker ha replicate" in found.fails(*found.start())


def test_queue_declare_start_replica_of_what_is_missing_on_a(far: Between) -> None:
    found = far().up()
    assert f"there is no queue '{NAME}' on original" in found.fails(*found.start())
    assert found.here.queues() == []


def test_ha_replicate(far: Between) -> None:
    found = far().up()
    assert f"there is no queue '{NAME}' here" in found.fails(*found.replicate)
    found.here.declare_queue(NAME).publish(b"its own")
    assert f"there is no queue '{NAME}' on original" in found.fails(*found.replicate)
    assert [each[1] for each in content(found.here.queue(NAME))] == [b"its own"]
    original = found.there.declare_queue(NAME)
    original.publish(b"one")
    said = found.shell.does(*found.replicate).said
    assert "what was in it before is saved on its broker: " in said
    found.run.equal(original, found.here.queue(NAME))
    before = found.here.queue(NAME)
    found.shell.does(*found.replicate)
    assert content(before) == content(original), "it is the same queue still: nothing was done"
    other = ["ha", "replicate", "--broker", found.b, "127.0.0.1:1", NAME]
    assert f"follows tcp://{found.a}" in found.fails(*other)


def test_ha_replicate_twice_of_a_broker_that_is_away(far: Between) -> None:
    """Whoever asks for what somebody else waits for is told the same."""
    found = far().up()
    found.here.declare_queue(NAME)
    nowhere = ["ha", "replicate", "-b", found.b, "127.0.0.1:1", NAME]
    with ThreadPoolExecutor() as pool:
        for said in [pool.submit(found.fails, *nowhere) for _ in range(2)]:
            assert "does not begin to follow: tcp://127.0.0.1:1" in said.result()
    assert "audit" not in found.run.copy.events()


def test_ha_replicas_and_ha_detach(far: Between) -> None:
    found = far().up()
    found.there.declare_queue(NAME).publish(b"one")
    found.shell.does(*found.start())
    found.run.waits("following")
    found.run.equal(found.there.queue(NAME), found.here.queue(NAME))
    [row] = found.shell.does("ha", "replicas", "-b", found.b, "--json").json
    assert (row["queue"], row["of"]) == (NAME, f"tcp://{found.a}")
    assert (row["state"], row["position"], row["lag-messages"]) == ("following", 1, 0)
    assert "following" in found.shell.does("ha", "replicas", "-b", found.b).out
    with pytest.raises(ReplicaReadOnly):
        found.here.queue(NAME).publish(b"x")
    found.run.original.kill()
    found.shell.does("ha", "detach", "-b", found.b, NAME)
    found.here.queue(NAME).publish(b"two")
    assert found.shell.does("ha", "replicas", "-b", found.b, "--json").json == []
    assert "follows nothing" in found.fails("ha", "detach", "-b", found.b, NAME)
    audit = [each for each in found.run.copy.said() if each["event"] == "audit"]
    assert [each["verb"] for each in audit] == ["replicate", "detach"]
    assert all("over a link" in str(each["user"]) for each in audit)


def test_confirm_replicas(far: Between) -> None:
    found = far().up()
    declare = ["queue", "declare", "-b", found.b, "--durable", NAME, "--confirm-replicas"]
    assert "confirm_replicas" in found.fails(*declare, "8")
    found.shell.does(*declare, "7")


def test_a_and_b_are_peers_lists_or_connectors(
    far: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    names: dict[str, object] = {"connectors.node1.uri": f"tcp://127.0.0.1:{port}"}
    found = far(original={"acceptors.copies.uri": f"tcp://127.0.0.1:{port}"}, copy=names).up()
    original = found.there.declare_queue(NAME)
    original.publish(b"one")
    for b, a in (
        (f"tcp://{found.b}", "node1"),
        (f"failover:(tcp://{found.b})", f"failover:(tcp://127.0.0.1:{port})"),
        (f"failover:(tcp://127.0.0.1:1,tcp://{found.b})?randomize=false", f"127.0.0.1:{port}"),
    ):
        found.shell.does("queue", "declare", "-b", b, "--start-replica", a, NAME)
        found.run.equal(original, found.here.queue(NAME))
        found.shell.does("ha", "detach", "-b", b, NAME)
        found.here.delete_queue(NAME, force=True)
    (found.run.last.folder / "shmbroker.toml").write_text(
        f'[connectors.node2]\nuri = "tcp://{found.b}"\n'
    )
    monkeypatch.chdir(found.run.last.folder)
    words = ["queue", "declare", "-b", "node2", "--start-replica", "node1", NAME]
    done = CliRunner().invoke(root, words, env=found.shell.environment)
    assert done.exit_code == 0, done
    found.run.equal(original, found.here.queue(NAME))


def test_usage_of_addresses(far: Between) -> None:
    found = far()
    said = found.fails("queue", "declare", "--start-replica", "node1", NAME, code=2)
    assert "--start-replica needs --broker" in said
    assert "its folder" in found.fails("ha", "replicas", "--url", "shm://default", code=2)
    nobody = found.fails("ha", "replicas", "-b", "127.0.0.1:1")
    assert "127.0.0.1:1" in nobody
