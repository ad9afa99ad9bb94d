"""`shmbroker browser`, with the options of `consumer`."""

from __future__ import annotations

from tests.cli.command import Shell


def test_it_looks_and_takes_nothing(shell: Shell) -> None:
    shell.does("queue", "declare", "haQueue")
    shell.does("producer", "--message-count", "10", "--destination", "queue://haQueue")
    said = shell.does("browser", "--destination", "queue://haQueue").out
    assert said.startswith("browsed 10 messages, 10 KiB, of queue://haQueue in ")
    answer = shell.does("browser", "--destination", "haQueue", "--message-count", "3", "--json")
    assert answer.json["messages"] == 3
    assert len(shell.bodies("haQueue")) == 10


def test_an_empty_queue_and_none(shell: Shell) -> None:
    shell.does("queue", "declare", "empty")
    assert shell.does("browser", "--destination", "empty", "--json").json["messages"] == 0
    assert shell("browser", "--destination", "emtpy").code == 1
    assert shell("browser", "--destination", "exchange://prices").code == 2
