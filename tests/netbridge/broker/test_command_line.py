"""Every verb that makes sense over a link takes --url; the others say where they are called."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

import shmbroker
from shmbroker import NotLocal
from shmbroker.cli.connection import NEEDS_MEMORY
from shmbroker.cli.main import root
from shmbroker.ipc.instance import status
from shmbroker.netbridge.client import connecting
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role
from shmbroker.perf.machine.port import free_port
from tests.cli.command import COMMAND, eventually
from tests.conftest import vhost_for_a_while
from tests.netbridge.broker.conftest import PASSWORD, made
from tests.support.link import PATIENCE
from tests.support.stopped import stopped

Words = Callable[..., str]
once = cache(Stretched)
"""Of the password of so many commands, which takes 100 ms each time."""


class Served(NamedTuple):
    url: str
    vhost: str
    plain: str
    """The url for a user who is no admin."""
    folder: Path

    def audit(self) -> list[dict[str, Any]]:
        lines = (self.folder / "log" / "shmbroker.log").read_text().splitlines()
        return [found for each in lines if (found := json.loads(each))["event"] == "audit"]


def listens(port: int) -> bool:
    with socket.socket() as made:
        return made.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`shmbroker run` with an acceptor for programs, and one for programs of another user."""
    with ExitStack() as opened:
        vhost = opened.enter_context(vhost_for_a_while())
        port, other = free_port(), free_port()
        run = made(
            tmp_path_factory.mktemp("broker") / "site",
            vhost,
            {
                "acceptors.programs.uri": f"tcp://127.0.0.1:{port}",
                "acceptors.programs.roles": ["client", "admin", "viewer"],
                "acceptors.programs.credentials": "site",
                "credentials.site.password": PASSWORD,
                "credentials.site.role": ["client", "admin", "viewer"],
                "credentials.plain.user": "plain",
                "credentials.plain.password": PASSWORD,
                "credentials.plain.role": "client",
                "acceptors.plain.uri": f"tcp://127.0.0.1:{other}",
                "acceptors.plain.credentials": "plain",
                "bridges.west.queue": "outbox",
                "bridges.west.to": f"tcp://127.0.0.1:{free_port()}",
                "credentials.west.password": PASSWORD,
                "credentials.west.role": "peering",
                "bridges.west.credentials": "west",
            },
        )
        opened.callback(run.kill)
        run.start().becomes("live")
        eventually(lambda: listens(port) and listens(other))
        yield Served(
            f"tcp://site@127.0.0.1:{port}", vhost, f"tcp://plain@127.0.0.1:{other}", run.folder
        )
        assert run.stop() == 0


@pytest.fixture
def far(
    broker: Served,
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


def test_a_queue_that_is_full_by_bytes_says_so(far: Words) -> None:
    far("queue", "declare", "three", "--slots", "64")
    far("queue", "declare", "small", "--max-bytes", "200B")
    far("pub", "three", "--lines", stdin="a\nb\nc\n")
    for verb in ("move", "copy"):
        with pytest.raises(click.ClickException, match="'small' is full"):
            far("queue", verb, "three", "small")
    assert listed(far("browse", "small", "--json"), "body") == ["a", "b"]


@pytest.mark.parametrize("place", ["queue", "exchange"])
def test_what_nobody_knows_of_is_said(far: Words, broker: Served, place: str) -> None:
    name = f"doubted-{place}"
    far("queue", "declare", name)
    far("exchange", "declare", name, "fanout")
    far("bind", name, name)
    where = [name] if place == "queue" else ["--exchange", name]
    beats = "heartbeat-interval=10s"  # a publish is not begun, if its link is lost before
    url = f"{broker.url}?call-timeout=3s&{beats}"
    words = [COMMAND, "pub", *where, "--lines", "--timeout", "1s", "--url", url]
    process = status.read(broker.folder).process
    assert process is not None
    with Popen(words, stdin=PIPE, stderr=PIPE) as publishing:
        assert publishing.stdin is not None
        publishing.stdin.write(b"a\n")
        publishing.stdin.flush()
        eventually(lambda: json.loads(far("queue", "stat", name, "--json"))["depth"] == 1)
        with stopped(process.pid):
            _, said = publishing.communicate(b"b\n", timeout=PATIENCE)
    assert publishing.returncode == 1
    doubt = f"1 message to {place} '{name}'; whether one more was published is unknown"
    assert doubt in said.decode()
    far("unbind", name, name)
    far("exchange", "delete", name, "--yes")


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


def test_a_request_and_a_dead_letter_sent_back(far: Words, broker: Served) -> None:
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


ARGUMENTS = {"queue latency": ["q"]}


@pytest.mark.parametrize("verb", sorted(NEEDS_MEMORY))
def test_a_verb_that_needs_shared_memory_says_so(verb: str) -> None:
    words = [*verb.split(), *ARGUMENTS.get(verb, []), "--url", "tcp://127.0.0.1:1"]
    said = message(words)
    kind = "Usage" if verb.startswith("check") else "NotLocal"
    assert said.startswith(f"{kind}: `shmbroker {verb}` cannot be over a link: ")


def test_to_nagios_a_check_over_a_link_is_unknown() -> None:
    words = ["check", "vhost", "--url", "tcp://127.0.0.1:1"]
    assert CliRunner().invoke(root, words).exit_code == 3


def checked(broker: Served, *words: str) -> tuple[int, str]:
    """Its exit code, and what its line begins with."""
    given = CliRunner().invoke(root, ["check", "queue", *words, "--url", broker.url])
    return given.exit_code, " ".join(given.stdout.split()[:2])


def test_a_queue_is_checked_and_watched(far: Words, broker: Served) -> None:
    far("queue", "declare", "watched", "--durable")
    far("pub", "watched", "one coffee")
    assert checked(broker, "watched") == (0, "QUEUE OK")
    assert checked(broker, "watched", "--depth-critical", "0") == (2, "QUEUE CRITICAL")
    assert checked(broker, "missing") == (2, "QUEUE CRITICAL")
    told = json.loads(far("top", "--once", "--interval", "1ms", "--json"))
    [row] = [each for each in told["queues"] if each["name"] == "watched"]
    assert (row["depth"], row["critical"]) == (1, None)
    far("queue", "delete", "watched", "--yes", "--force")


def test_links_are_shown_stopped_and_started(far: Words) -> None:
    assert listed(far("link", "list", "--json")) == ["west"]
    assert far("link", "list", "--names").split() == ["west"]
    far("link", "stop", "west", "--timeout", "60s")
    assert listed(far("link", "list", "--json"), "state") == ["stopped"]
    far("link", "start", "west", "--timeout", "60s")
    assert listed(far("link", "list", "--json"), "state") != ["stopped"]
    assert far("mta", "list").startswith("EXCHANGE")
    with pytest.raises(shmbroker.InvalidArgument, match="no link 'x'"):
        far("link", "stop", "x")


def test_programs_are_shown_and_disconnected(far: Words, broker: Served) -> None:
    with ExitStack() as opened:
        near = opened.enter_context(shmbroker.connect(f"shm://{broker[1]}", name="near"))
        shop = shmbroker.connect(
            f"{broker[0]}?failover-mode=application", password=PASSWORD, name="shop"
        )
        opened.callback(shop.close)
        queue = shop.declare_queue("shopping", slots=64)
        rows = json.loads(far("participants", "--json"))
        [row] = [each for each in rows if each["name"] == "shop"]
        assert (row["remote"]["user"], row["remote"]["address"]) == ("site", "127.0.0.1")
        far("disconnect", str(row["id"]))
        with pytest.raises(shmbroker.ConnectionClosed):
            queue.publish(b"late", timeout=PATIENCE)
        [row] = [each for each in rows if each["name"] == "near"]
        far("disconnect", str(row["id"]), "--timeout", "10ms")
        with pytest.raises(shmbroker.ConnectionClosed):
            near.queue("shopping").get(timeout=PATIENCE)
    with pytest.raises(shmbroker.NotFound):
        far("disconnect", "999999")
    far("queue", "delete", "shopping", "--yes", "--force")


def test_nobody_disconnects_himself(broker: Served, far: Words) -> None:
    login = connecting.Login(broker[0], None, PASSWORD, "me", role=Role.ADMIN)
    with connecting.connect(login) as admin:
        rows = admin.order("show", noun="programs")
        [mine] = [each for each in rows if each["role"] == "admin"]
        with pytest.raises(shmbroker.InvalidArgument, match="who asks for that"):
            admin.order("disconnect", noun="programs", who=mine["session"], timeout=1)


def test_users_are_listed_added_changed_and_removed(far: Words, broker: Served) -> None:
    names = ["plain", "site", "west"]
    assert sorted(far("user", "list", "--names").split()) == names
    far("user", "add", "olga", "--role", "viewer", "--user", "oo", stdin=f"{PASSWORD} too\n")
    [olga] = [each for each in json.loads(far("user", "list", "--json")) if each["name"] == "olga"]
    assert (olga["user"], olga["roles"], olga["password"]) == ("oo", ["viewer"], "file")
    far("user", "change", "olga", "--role", "client")
    far("user", "password", "olga", stdin="another good one\n")
    with pytest.raises(shmbroker.NotAllowed, match="site is you"):
        far("user", "password", "site", stdin="another good one\n")
    far("user", "remove", "olga", "--yes")
    assert sorted(far("user", "list", "--names").split()) == names
    with pytest.raises(shmbroker.NotFound, match="'olga'"):
        far("user", "remove", "olga", "--yes")
    audit = [each for each in broker.audit() if each["verb"].startswith("user ")]
    verbs = ["user add", "user change", "user password", "user remove"]
    assert [(each["verb"], each["name"]) for each in audit] == [(each, "olga") for each in verbs]
    assert all(each["user"].startswith("site (shmbroker user ") for each in audit)
    assert "another good one" not in repr(audit)


@pytest.mark.parametrize("role", [Role.CLIENT, Role.VIEWER])
def test_who_is_no_admin_orders_nothing(broker: Served, far: Words, role: Role) -> None:
    login = connecting.Login(broker[0], None, PASSWORD, "shop", role=role)
    with connecting.connect(login) as program:
        assert program.order("show", noun="links")
        for noun, verb in (
            ("users", "show"), ("users", "add"), ("users", "remove"), ("links", "stop"),
            ("programs", "disconnect"), ("nothing", "anything"),
        ):  # fmt: skip
            with pytest.raises(shmbroker.NotAllowed):
                program.order(verb, noun=noun, name="west", who="1")


def test_looking_over_a_link_makes_no_queue(far: Words, broker: Served) -> None:
    far("settings", "set", "session-42", "--auto-create")
    for verb in ("stat", "browse", "explain"):
        with pytest.raises(shmbroker.NotFound, match="there is no queue 'session-42'"):
            far("queue", verb, "session-42")
    assert checked(broker, "session-42") == (2, "QUEUE CRITICAL")
    login = connecting.Login(broker[0], None, PASSWORD, "eve", role=Role.VIEWER)
    says = "there is no queue 'session-42'"
    with connecting.connect(login) as viewer, pytest.raises(shmbroker.NotFound, match=says):
        viewer.subscribe("session-42")
    assert "session-42" not in far("queue", "list", "--names").split()


def test_a_viewer_keeps_nothing_in_a_ring(far: Words, broker: Served) -> None:
    far("queue", "declare", "kept")
    far("queue", "declare", "seen", "--non-destructive")
    far("pub", "seen", "news")
    login = connecting.Login(broker[0], None, PASSWORD, "eve", role=Role.VIEWER)
    with connecting.connect(login) as viewer:
        with pytest.raises(shmbroker.NotAllowed, match="publishers wait for it"):
            viewer.subscribe("kept")
        with viewer.subscribe("seen", start="earliest") as seen:
            assert seen.get(timeout=PATIENCE).body == b"news"


def test_an_admin_over_a_link_looks_and_orders(broker: Served, far: Words) -> None:
    login = connecting.Login(broker[0], None, PASSWORD, "me", role=Role.ADMIN)
    with connecting.connect(login) as admin:
        assert admin.participants()
        with pytest.raises(shmbroker.NotAllowed, match="an admin looks and orders"):
            admin.declare_queue("mine")
        for given in (
            {"noun": "users", "name": "eve", "roles": "admin"},
            {"noun": "users", "name": "eve", "roles": [7]},
            {"noun": "users", "name": "eve", "roles": ["client"], "password": 7},
            {"noun": "users", "name": "../eve", "roles": ["client"], "password": PASSWORD},
            {"noun": "nothing"},
        ):
            with pytest.raises(shmbroker.InvalidArgument):
                admin.order("add", **given)
        for timeout in (float("nan"), float("inf"), -1, "soon"):
            with pytest.raises(shmbroker.InvalidArgument):
                admin.order("disconnect", noun="programs", who="1", timeout=timeout)


def test_a_user_without_the_role_is_told_what_it_takes(
    broker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shmbroker.netbridge.client.connecting.Stretched", once)
    monkeypatch.setenv("SHMBROKER_PASSWORD", PASSWORD)
    said = message(["user", "list", "--url", broker.plain])
    assert "plain needs the role admin, and so does `roles` of the acceptor" in said


def test_a_broker_is_named_by_its_host_and_port(far: Words, broker: Served) -> None:
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
    broker: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHMBROKER_PASSWORD", raising=False)
    words = ["queue", "list", "--names", "--password-file", str(tmp_path / "password")]
    (tmp_path / "password").write_text(PASSWORD + "\n")
    (tmp_path / "password").chmod(0o644)
    assert "may be read or written by others" in message([*words, "--url", broker[0]])
    (tmp_path / "password").chmod(0o600)
    assert CliRunner().invoke(root, [*words, "--url", broker[0]]).exit_code == 0
    assert "goes with --url" in message(words)


def test_shared_memory_by_its_url(broker: Served) -> None:
    words = ["--url", f"shm://{broker[1]}", "--json"]
    for verb in (["participants"], ["top", "--once", "--interval", "1ms"], ["queue", "list"]):
        assert CliRunner().invoke(root, [*verb, *words]).exit_code == 0


def test_names_are_completed_over_the_link(
    far: Words, broker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    far("queue", "declare", "complete")
    monkeypatch.setenv("_SHMBROKER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"shmbroker queue stat --url {broker[0]} comp")
    monkeypatch.setenv("COMP_CWORD", "5")
    done = CliRunner().invoke(root, prog_name="shmbroker")
    assert done.output.split() == ["plain,complete"]
