"""`shmbroker config` and `shmbroker key`: nothing of them shows a secret."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from shmbroker.ipc.instance.config.config import FILE
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.security.stretched import Stretched
from tests.cli.command import Answer, Shell
from tests.cli.test_instance import Start

HIDDEN = "correct horse battery"


def fails(shell: Shell, code: int, *arguments: str) -> Answer:
    answer = shell(*arguments)
    assert answer.code == code, answer.said
    return answer


def create(shell: Shell, folder: Path, *settings: str) -> Path:
    words = (word for each in settings for word in ("--set", each))
    shell.does("create", str(folder), "--vhost", shell.vhost, *words)
    return folder


def test_explain(shell: Shell, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "a", "connectors.b.uri=tcp://b:5")
    with (folder / FILE).open("a") as file:
        file.write(f'[credentials.apps]\npassword = "{HIDDEN}"\n')
    shown = shell.does("config", "explain", str(folder), "--set", "ha.role=backup")
    assert HIDDEN not in shown.out
    assert "***" in shown.out
    found = {
        each["key"]: each
        for each in shell.does("config", "explain", str(folder), "--set", "ha.role=backup",
                               "--json").json
    }  # fmt: skip
    assert found["ha.role"] == {"key": "ha.role", "value": "backup", "source": "flag"}
    assert found["connectors.b.uri"]["source"] == str(folder / FILE)
    assert found["credentials.apps.password"]["value"] == "***"


def test_explain_says_what_is_wrong(shell: Shell, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "a")
    with (folder / FILE).open("a") as file:
        file.write("[connectors.b]\nuri = 'tcp://b:port'\n")
    failed = fails(shell, 1, "config", "explain", str(folder))
    assert "connectors.b.uri" in failed.said
    assert "a port is 1 to 65535" in failed.said


def test_no_secret_stands_on_a_command_line(shell: Shell, tmp_path: Path) -> None:
    for setting in (f"credentials.a.password={HIDDEN}", f'credentials.a.accept-also=["{HIDDEN}"]'):
        failed = fails(shell, 2, "create", str(tmp_path / "a"), "--set", setting)
        assert "all on this host see a command line" in failed.said
    create(shell, tmp_path / "a", 'credentials.a.password={ env = "X" }')


def test_keys(shell: Shell, tmp_path: Path) -> None:
    a = create(shell, tmp_path / "a", "security.key-file=key", "security.known-keys=known")
    public = shell.does("key", "create", str(a)).out.strip()
    assert len(bytes.fromhex(public)) == 32
    secret = (a / "key").read_text().strip()
    shell.does("key", "trust", str(a), public, "--role", "replica", "--name", "the other one")
    shown = shell.does("key", "show", str(a))
    assert shown.out.splitlines() == [public, f"{public} replica the other one"]
    assert shell.does("key", "show", str(a), "--json").json == {
        "public": public,
        "known": [{"key": public, "roles": ["replica"], "name": "the other one"}],
        "acceptors": [],
    }
    assert secret not in shown.out
    assert "is there already" in fails(shell, 1, "key", "create", str(a)).said
    b = create(shell, tmp_path / "b")
    assert "has no security.key-file" in fails(shell, 1, "key", "create", str(b)).said
    assert "64 hexadecimal" in fails(shell, 1, "key", "trust", str(a), "xyz").said


def test_who_is_added_is_told_the_key_of_the_acceptor(shell: Shell, tmp_path: Path) -> None:
    shell.does("create", folder := str(tmp_path / "a"), "--port", "61700")
    added = shell.does("user", "add", folder, "olga", stdin=b"correct horse battery\n")
    (acceptor,) = shell.does("key", "show", folder, "--json").json["acceptors"]
    password = (tmp_path / "a" / "programs.password").read_text().strip()
    assert acceptor == {
        "name": "programs",
        "uri": "tcp://127.0.0.1:61700",
        "credentials": "programs",
        "key": public_of(Stretched("programs", password).listening).hex(),
    }
    assert f"{acceptor['uri']}?key={acceptor['key']}" in added.said
    assert shell.does("key", "show", folder).out.splitlines()[1].endswith(acceptor["key"])
    eve = shell.does("user", "add", folder, "eve", "--role", "viewer", stdin=b"staple staple\n")
    assert "key" not in eve.said  # no acceptor lets viewers in


def test_a_running_broker_reads_its_configuration_again(
    shell: Shell, start: Start, tmp_path: Path
) -> None:
    folder = create(shell, tmp_path / "a", "store.segment=1MiB")
    start("run", str(folder))
    status = shell.does("status", str(folder), "--wait", "live", "--timeout", "60s", "--json").json
    file = folder / FILE
    good = file.read_text()
    changed = f"""{good}
[credentials.apps]
password = "{HIDDEN}"
"""
    file.write_text(changed.replace("# role =", "role = 'backup' #"))
    said = shell.does("config", "reload", str(folder)).said
    assert "credentials.apps.password is changed" in said
    assert "ha.role is ignored: it needs a restart" in said
    file.write_text(changed.replace(HIDDEN, "guest"))
    failed = fails(shell, 1, "config", "reload", str(folder)).said
    assert "nothing was changed: credentials.apps.password is what another product" in failed
    file.write_text(good + "[nothing]")
    assert "there is no table [nothing]" in fails(shell, 1, "config", "reload", str(folder)).said
    file.write_text(good)
    os.kill(status["process"], signal.SIGHUP)
    log, late = folder / "log/shmbroker.log", time.monotonic() + 60
    while log.read_text().count('"reloaded"') < 2:  # the kernel makes one of two such signals
        assert time.monotonic() < late
        time.sleep(0.02)
    assert "is changed" not in shell.does("config", "reload", str(folder)).said
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    events = [each["event"] for each in lines if each["event"].startswith("reload")]
    assert events == ["reloaded", "reload refused", "reloaded", "reloaded"]
    assert HIDDEN not in str(lines)
    shell.does("stop", str(folder))
