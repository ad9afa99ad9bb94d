"""Every verb that makes sense over a link takes --url; the others say where they are called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest
from click.testing import CliRunner

import shmbroker
from shmbroker import NotLocal
from shmbroker.cli.connection import NEEDS_MEMORY
from shmbroker.cli.main import root
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.netbridge.broker.conftest import PASSWORD, made
from tests.support.link import PATIENCE

Words = Callable[..., str]
once = cache(Stretched)
"""Of the password of so many commands, which takes 100 ms each time."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """`shmbroker run` with an acceptor for programs: its url, and its vhost."""
    with ExitStack() as opened:
        vhost = opened.enter_context(vhost_for_a_while())
        port = free_port()
        run = made(
            tmp_path_factory.mktemp("broker") / "site",
            vhost,
            {
                "acceptors.programs.uri": f"tcp://127.0.0.1:{port}",
                "credentials.site.password": PASSWORD,
                "credentials.site.role": "client",
            },
        )
        opened.callback(run.kill)
        run.start().becomes("live")
        yield f"tcp://site@127.0.0.1:{port}", vhost
        assert run.stop() == 0


@pytest.fixture
def far(
    broker: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Words:
    """A verb over the link: what it prints."""
    monkeypatch.setattr("shmbroker.netbridge.client.connecting.Stretched", once)
    monkeypatch.setenv("SHMBROKER_PASSWORD", PASSWORD)
    monkeypatch.setenv("SHMBROKER_VHOST", "nobody-has-this")

    def does(*words: str, stdin: str = "") -> str:
        (tmp_path / "stdin").write_text(stdin)
        with (tmp_path / "stdin").open() as typed:
            monkeypatch.setattr("sys.stdin", typed)
            root.main([*words, "--url", broker[0]], "shmbroker", standalone_mode=False)
        return capfd.readouterr().out

    return does


def listed(text: str, name: str = "name") -> list[Any]:
    return [each[name] for each in json.loads(text)]


def test_queues_and_their_messages(far: Words) -> None:
    far("queue", "declare", "orders", "--slots", "64")
    far("queue", "declare", "others", "--slots", "64")
    assert {"orders", "others"} <= set(far("queue", "list", "--names").split())
    far("pub", "orders", "one coffee", "--property", "table=7", "--key", "hot")
    far("pub", "orders", "--lines", stdin="two\nthree\n")
    bodies = ["one coffee", "two", "three"]
    assert listed(far("browse", "orders", "--json"), "body") == bodies
    assert far("sub", "orders", "--from", "earliest", "--count", "3").split("\n")[:3] == bodies
    requeued = far("queue", "get", "orders", "--selector", "table = 7", "--requeue")
    assert requeued.strip() == "one coffee"
    assert json.loads(far("queue", "stat", "orders", "--json"))["depth"] == 3
    assert far("queue", "get", "orders").strip() == "one coffee"
    far("queue", "move", "orders", "others", "--count", "1")
    far("queue", "copy", "orders", "others")
    with pytest.raises(NotLocal, match="does not wait for room"):
        far("queue", "copy", "orders", "others", "--timeout", "1s")
    lines = far("queue", "export", "others")
    far("queue", "import", "orders", stdin=lines)
    assert listed(far("queue", "browse", "orders", "--json"), "body") == ["three", "two", "three"]
    far("queue", "move", "orders", "others")
    far("queue", "pause", "others")
    assert json.loads(far("queue", "stat", "others", "--json"))["paused"]
    far("queue", "resume", "others")
    far("pub", "others", "cake", "--deliver-after", "1h")
    cake = listed(far("queue", "scheduled", "others", "--json"), "id")
    far("queue", "scheduled", "others", "--cancel", str(cake[0]))
    assert "max deliveries" in far("queue", "explain", "others")
    assert far("queue", "groups", "others").startswith("GROUP")
    far("producer", "--destination", "orders", "--message-count", "5")
    far("consumer", "--destination", "orders", "--message-count", "5", "--timeout", "5s")
    far("queue", "purge", "others", "--yes")
    for name in ("orders", "others"):
        far("queue", "delete", name, "--yes")


def test_durable_and_last_value_queues(far: Words) -> None:
    far("queue", "declare", "safe", "--durable")
    far("pub", "safe", "gold", "--confirm", "disk")
    far("pub", "safe", "silver", "--id", "once")
    far("pub", "safe", "silver", "--id", "once")
    assert listed(far("browse", "safe", "--json"), "body") == ["gold", "silver"]
    far("queue", "delete", "safe", "--yes", "--force")
    far("queue", "declare", "rates", "--last-value")
    with pytest.raises(NotLocal, match="has credit"):
        far("sub", "rates", "--lossy")
    far("pub", "rates", "1.08", "--key", "eur")
    assert far("queue", "value", "rates", "eur").strip() == "1.08"
    far("queue", "delete", "rates", "--yes")


def test_exchanges_subscriptions_and_settings(far: Words) -> None:
    far("exchange", "declare", "prices", "topic")
    far("exchange", "declare", "audit", "fanout")
    far("queue", "declare", "fx", "--slots", "64")
    far("bind", "prices", "fx", "--key", "eu.#")
    far("divert", "prices", "audit")
    assert {"prices", "audit"} <= set(far("exchange", "list", "--names").split())
    assert {"fx", "audit"} == set(listed(far("exchange", "bindings", "--json"), "destination"))
    far("pub", "--exchange", "prices", "--key", "eu.de", "1.08", "--mandatory")
    far("producer", "--destination", "exchange://prices/eu.de", "--message-count", "2")
    assert json.loads(far("queue", "stat", "fx", "--json"))["depth"] == 3
    far("undivert", "prices", "audit")
    far("unbind", "prices", "fx", "--key", "eu.#")
    subscribed = ("sub", "--name", "night", "--exchange", "audit", "--durable", "--timeout")
    far(*subscribed, "10ms")
    far("pub", "--exchange", "audit", "late")
    assert far(*subscribed, "20s", "--count", "1").strip() == "late"
    assert "night" in far("subscription", "list", "--names").split()
    far("subscription", "remove", "night", "--yes")
    far("exchange", "delete", "audit", "--yes")
    far("settings", "set", "many.#", "--max-deliveries", "3")
    assert "many.#" in far("settings", "list", "--names")
    far("settings", "remove", "many.#")
    far("errors")
    assert json.loads(far("participants", "--json"))


def test_a_request_and_a_dead_letter_sent_back(far: Words, broker: tuple[str, str]) -> None:
    far("queue", "declare", "dead", "--slots", "64")
    far("queue", "declare", "asked", "--slots", "64", "--dead-letter", "dead")

    def answers() -> None:
        with shmbroker.connect(f"shm://{broker[1]}") as near:
            with near.queue("asked").get(timeout=PATIENCE) as message:
                message.reply(b"to " + message.body)
            near.queue("asked").get(timeout=PATIENCE).reject()

    beside = Thread(target=answers)
    beside.start()
    assert far("request", "asked", "you", "--timeout", "30s").strip() == "to you"
    far("pub", "asked", "bad")
    beside.join()
    far("queue", "retry", "dead")
    assert far("queue", "get", "asked").strip() == "bad"


def message(words: list[str]) -> str:
    """What is said of an error: a line."""
    with pytest.raises((click.ClickException, shmbroker.Error)) as error:
        root.main(words, standalone_mode=False)
    said = getattr(error.value, "message", None) or str(error.value)
    assert "\n" not in said
    return f"{type(error.value).__name__}: {said}"


ARGUMENTS = {"check queue": ["q"], "queue latency": ["q"], "link stop": ["x"], "link start": ["x"]}


@pytest.mark.parametrize("verb", sorted(NEEDS_MEMORY))
def test_a_verb_that_needs_shared_memory_says_so(verb: str) -> None:
    words = [*verb.split(), *ARGUMENTS.get(verb, []), "--url", "tcp://127.0.0.1:1"]
    said = message(words)
    kind = "Usage" if verb.startswith("check") else "NotLocal"
    assert said.startswith(f"{kind}: `shmbroker {verb}` cannot be over a link: ")


def test_to_nagios_a_check_over_a_link_is_unknown() -> None:
    words = ["check", "queue", "q", "--url", "tcp://127.0.0.1:1"]
    assert CliRunner().invoke(root, words).exit_code == 3


def test_a_broker_is_named_by_its_host_and_port(far: Words, broker: tuple[str, str]) -> None:
    far("queue", "declare", "named")
    words = ["queue", "list", "--names", "-b", broker[0].removeprefix("tcp://site@")]
    given = CliRunner().invoke(root, words, env={"SHMBROKER_USER": "site"})
    assert "named" in given.stdout.split()
    for wrong, said in (
        (["-b", "/nowhere"], "is no folder of a broker"),
        (["-b", "host", "--url", "tcp://host"], "either --url, --broker or --context"),
        (["-b", "host", "--vhost", "v"], "either --vhost, --url, --broker or --context"),
    ):
        assert said in message(["queue", "list", *wrong])


@pytest.mark.parametrize(
    "url", ["tcp://site:secret@a", "failover:(tcp://a:1,tcp://site:secret@b)", "tcp://s:a/b@c"]
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(url: str) -> None:
    said = message(["queue", "list", "--url", url])
    assert "SHMBROKER_PASSWORD, or --password-file FILE" in said
    assert "secret" not in said


def test_what_an_operator_reads_when_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHMBROKER_PASSWORD", raising=False)
    port, list_ = free_port(), ["queue", "list"]
    url = f"tcp://site@127.0.0.1:{port}"
    assert "takes a user and a password" in message([*list_, "--url", url])
    monkeypatch.setenv("SHMBROKER_PASSWORD", PASSWORD)
    assert f"127.0.0.1:{port}: nobody listens there, or" in message([*list_, "--url", url])
    assert "UsageError: either" in message([*list_, "--url", url, "--vhost", "x"])
    assert "UsageError: a url is" in message([*list_, "--url", "orders"])


def test_the_password_may_lie_in_a_file(
    broker: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHMBROKER_PASSWORD", raising=False)
    words = ["queue", "list", "--names", "--password-file", str(tmp_path / "password")]
    (tmp_path / "password").write_text(PASSWORD + "\n")
    (tmp_path / "password").chmod(0o644)
    assert "may be read or written by others" in message([*words, "--url", broker[0]])
    (tmp_path / "password").chmod(0o600)
    assert CliRunner().invoke(root, [*words, "--url", broker[0]]).exit_code == 0
    assert "goes with --url" in message(words)


def test_shared_memory_by_its_url(broker: tuple[str, str]) -> None:
    words = ["--url", f"shm://{broker[1]}", "--json"]
    for verb in (["participants"], ["top", "--once", "--interval", "1ms"], ["queue", "list"]):
        assert CliRunner().invoke(root, [*verb, *words]).exit_code == 0


def test_names_are_completed_over_the_link(
    far: Words, broker: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    far("queue", "declare", "complete")
    monkeypatch.setenv("_SHMBROKER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"shmbroker queue stat --url {broker[0]} comp")
    monkeypatch.setenv("COMP_CWORD", "5")
    done = CliRunner().invoke(root, prog_name="shmbroker")
    assert done.output.split() == ["plain,complete"]
