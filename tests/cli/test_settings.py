"""`shmbroker settings`, and what else the command says about settings."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from shmbroker.ipc.settings.setting import SETTINGS
from tests.cli.command import Shell

EXAMPLES: dict[str, tuple[str, Any]] = {
    "count": ("3", 3),
    "queue": ("other", "other"),
    "seconds": ("250ms", 0.25),
    "size": ("1MiB", 1 << 20),
    "flag": ("", True),
    "choice": ("", ""),
    "levels": ("3", 3),
    "buckets": ("16", 16),
    "factor": ("1.5", 1.5),
    "number": ("3", 3),
    "rate": ("0.5", 0.5),
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.name)
def test_each_setting_is_an_option(shell: Shell, setting: Any) -> None:
    text, value = EXAMPLES[setting.kind]
    if setting.choices:
        text = value = tuple(setting.choices)[1]  # the last of when_full needs a broker
    option = "--" + setting.name.replace("_", "-")
    arguments = [option, text] if text else [option]
    shell.does("settings", "set", "x.#", *arguments)
    (found,) = shell.does("settings", "list", "--json").json
    assert found == {"pattern": "x.#", "settings": {setting.name: value}}
    if setting.is_of_patterns:
        assert shell("queue", "declare", "q", *arguments).code == 2
        return
    if setting.name in ("confirm_replicas", "replicate"):  # of queues that are in the journal
        arguments.append("--durable")
    shell.does("queue", "declare", "q", *arguments)
    explained = shell.does("queue", "explain", "q", "--json").json
    assert explained[setting.name] == {"value": value, "source": "declared"}


def test_none_is_a_value(shell: Shell) -> None:
    shell.does("settings", "set", "#", "--dead-letter", "dead", "--no-auto-delete")
    shell.does("queue", "declare", "q", "--dead-letter", "none", "--max-deliveries", "none")
    explained = shell.does("queue", "explain", "q", "--json").json
    assert explained["dead_letter"] == {"value": None, "source": "declared"}
    assert explained["max_deliveries"] == {"value": None, "source": "declared"}
    assert explained["auto_delete"] == {"value": False, "source": "pattern '#'"}


def test_explain_for_people(shell: Shell) -> None:
    shell.does("settings", "set", "orders.#", "--ttl", "5s")
    shell.does("queue", "declare", "orders.eu", "--max-messages", "1000")
    lines = shell.does("queue", "explain", "orders.eu").lines
    assert lines[0].split() == ["SETTING", "VALUE", "FROM"]
    assert ["max", "messages", "1,000", "declared"] in [line.split() for line in lines]
    assert any(line.split() == ["ttl", "5.0", "pattern", "'orders.#'"] for line in lines)


def test_list_and_remove(shell: Shell) -> None:
    assert shell.does("settings", "list", "--json").json == []
    shell.does("settings", "set", "b", "--ttl", "1s")
    shell.does("settings", "set", "a.*", "--ttl", "1s", "--when-full", "fail")
    assert shell.does("settings", "list", "--names").lines == ["a.*", "b"]
    assert "ttl=1.0, when_full=fail" in shell.does("settings", "list").out
    shell.does("settings", "remove", "b")
    assert shell.does("settings", "list", "--names").lines == ["a.*"]
    answer = shell("settings", "remove", "b")
    assert answer.code == 1
    assert "no settings for the pattern 'b'" in answer.said


def test_bad_values(shell: Shell) -> None:
    for arguments in (["--ttl", "soon"], ["--max-deliveries", "0"], ["--when-full", "explode"]):
        assert shell("queue", "declare", "q", *arguments).code == 2
    answer = shell("queue", "declare", "q", "--max-deliveries", "15")
    assert answer.code == 1
    assert "max_deliveries is a number from 0 to 14, not 15" in answer.said


def test_pub_with_a_ttl_and_a_priority(shell: Shell) -> None:
    shell.does("queue", "declare", "orders", "--expiry-queue", "late")
    shell.does("pub", "orders", "--ttl", "1ms", "late")
    shell.does("pub", "orders", "--priority", "9", "good")
    time.sleep(0.002)
    (line,) = shell.does("queue", "export", "orders").lines
    assert (json.loads(line)["body"], json.loads(line)["priority"]) == ("good", 9)
    assert shell("pub", "orders", "--priority", "10", "x").code == 2


def test_retry(shell: Shell) -> None:
    shell.does("queue", "declare", "orders", "--max-deliveries", "1", "--dead-letter", "dead")
    shell.does("pub", "dead", "--property", "dead.origin=orders", "--lines", stdin=b"a\nb\n")
    answer = shell.does("queue", "retry", "dead", "--limit", "1")
    assert "1 message of queue 'dead' sent back" in answer.said
    shell.does("pub", "dead", "--property", "dead.origin=nowhere", "c")
    answer = shell("queue", "retry", "dead")
    assert answer.code == 1
    assert "1 message stayed: there is no queue 'nowhere'" in answer.said
    assert (shell.bodies("orders"), shell.bodies("dead")) == (["a", "b"], ["c"])


def test_export_and_import(shell: Shell) -> None:
    shell.does("queue", "declare", "here")
    shell.does("queue", "declare", "there")
    shell.does("pub", "here", "--key", "k", "--property", "n=1", stdin=b"\xff")
    shell.does("pub", "here", "text")
    lines = shell.does("queue", "export", "here").out
    assert "2 messages" in shell.does("queue", "import", "there", stdin=lines.encode()).said
    assert shell.bodies("there") == shell.bodies("here")
    bad = b'{"body": "x"}\nnonsense\n{"body": "y"}\n'
    answer = shell("queue", "import", "there", stdin=bad)
    assert answer.code == 1
    assert "line 2: expected a JSON object" in answer.said
    assert shell.bodies("there")[2:] == ["x"]
    answer = shell.does("queue", "import", "there", "--skip-bad", stdin=bad)
    assert "line 2" in answer.said
    assert shell.bodies("there")[3:] == ["x", "y"]
