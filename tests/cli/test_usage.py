"""What every verb has in common: help, exit codes, hints, and how fast it answers."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from shmbroker.cli.main import root
from shmbroker.ipc.journal.journal import Journal
from tests.cli.command import COMMAND, Shell


def every_command(
    command: click.Command, path: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found += every_command(below, (*path, name))
    return found


COMMANDS = every_command(root)
IDS = [" ".join(path) or "shmbroker" for path, _ in COMMANDS]


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_help_begins_with_examples_and_explains_every_option(
    path: tuple[str, ...], command: click.Command
) -> None:
    with click.Context(command, info_name=" ".join(["shmbroker", *path])) as context:
        text = command.get_help(context)
    examples, usage, _ = text.partition("Usage:")
    assert usage
    assert examples.startswith("Examples:\n  ")
    assert "shmbroker " + " ".join(path) in examples
    assert command.help
    if len(path) == 1:
        assert "..." not in command.get_short_help_str(60), "the list of commands cuts it"
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=IDS)
def test_every_example_is_a_command_that_can_be_parsed(
    path: tuple[str, ...], command: click.Command
) -> None:
    for line in command.examples.strip().splitlines():  # type: ignore[attr-defined]
        for name, *arguments in simple_commands(line):
            if name == "shmbroker" and "cat.jpg" not in arguments:  # we have no photo of one
                parse(root, arguments)


def simple_commands(line: str) -> list[list[str]]:
    """The words of each command of a line of shell, without pipes and redirections."""
    words = shlex.shlex(line.strip(), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("|<>()"):
            found.append([])
        else:
            found[-1].append(word)
    return [command for command in found if command]


def parse(command: click.Command, arguments: list[str]) -> None:
    while isinstance(command, click.Group):
        context = click.Context(command)
        _, below, arguments = command.resolve_command(context, arguments)
        assert below is not None
        command = below
    command.make_context(command.name, arguments)


def test_nothing_typed_shows_what_there_is_and_is_a_wrong_usage(shell: Shell) -> None:
    for arguments in ([], ["queue"]):
        answer = shell(*arguments)
        assert answer.code == 2
        assert answer.out == ""
        assert answer.said.startswith("Examples:")
        assert "Commands:" in answer.said


def test_version(shell: Shell) -> None:
    assert shell.does("--version").out.startswith("shmbroker 0.")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["qeue"], "Did you mean 'queue'?"),
        (["queue", "stats"], "Did you mean 'stat'?"),
        (["queue", "lst"], "Did you mean 'list'?"),
        (["queue", "stat"], "Missing argument 'NAME'"),
        (["queue", "declare", "x", "--slots", "many"], "is not a valid integer"),
        (["producer", "--destination", "q", "--message-size", "big"], "64KiB"),
        (["sub", "q", "--timeout", "soon"], "50us"),
        (["producer", "--destination", "topic://x"], "queue://NAME"),
        (["pub", "q", "b", "--property", "n"], "name=value"),
        (["pub", "q", "one", "coffee"], "quote"),
        (["pub"], "--exchange"),
        (["queue", "move", "a", "a"], "itself"),
        (["cluster", "list", "d", "--url", "tcp://a"], "call it there, with the broker's folder"),
        (["vhost", "list", "-b", "a"], "takes no -b: it works on the broker's own host"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_usage_is_one_line_and_ends_with_2(
    shell: Shell, arguments: list[str], hint: str
) -> None:
    answer = shell(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert hint in answer.said
    assert answer.said.count("\n") == 1
    assert answer.said.startswith("shmbroker: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["queue", "stat", "order"],
        ["queue", "browse", "order"],
        ["queue", "purge", "order", "--yes"],
        ["queue", "delete", "order", "--yes"],
        ["queue", "pause", "order"],
        ["queue", "move", "orders", "order"],
        ["pub", "order", "x"],
        ["sub", "order"],
        ["pub", "order", "x", "--confirm", "shm"],
        ["consumer", "--destination", "order"],
        ["bind", "prices", "order"],
    ],
    ids=" ".join,
)
def test_a_misspelt_queue_is_asked_about(shell: Shell, arguments: list[str]) -> None:
    shell.does("queue", "declare", "orders")
    shell.does("exchange", "declare", "prices", "topic")
    answer = shell(*arguments)
    assert answer.code == 1
    assert answer.out == ""
    assert "Did you mean 'orders'?" in answer.said
    assert "'order'" in answer.said


def test_a_missing_queue_is_told_how_to_be_made(shell: Shell) -> None:
    answer = shell("queue", "stat", "orders")
    assert answer.code == 1
    assert "shmbroker queue declare orders" in answer.said


def test_a_misspelt_exchange_is_asked_about(shell: Shell) -> None:
    shell.does("exchange", "declare", "prices", "topic")
    for arguments in (
        ["pub", "--exchange", "price", "x"],
        ["exchange", "delete", "price", "--yes"],
        ["exchange", "declare", "more", "topic", "--alternate", "price"],
        ["producer", "--destination", "exchange://price/x"],
    ):
        answer = shell(*arguments)
        assert answer.code == 1
        assert "Did you mean 'prices'?" in answer.said


@pytest.mark.parametrize(
    "arguments",
    [
        ["queue", "purge", "orders"],
        ["queue", "delete", "orders"],
        ["exchange", "delete", "prices"],
        ["vhost", "delete", "some"],
    ],
    ids=" ".join,
)
def test_what_destroys_wants_yes_if_there_is_no_terminal(
    shell: Shell, arguments: list[str]
) -> None:
    shell.does("queue", "declare", "orders")
    shell.does("exchange", "declare", "prices", "topic")
    shell.does("pub", "orders", "x")
    answer = shell(*arguments, stdin=b"y\n")
    assert answer.code == 2
    assert "--yes" in answer.said
    assert shell.bodies("orders") == ["x"]
    assert shell.does("exchange", "list", "--names").lines.count("prices") == 1


def test_the_flag_beats_the_environment(shell: Shell) -> None:
    shell.environment["SHMBROKER_VHOST"] = "nobody-has-this"
    shell.does("queue", "declare", "orders", "--vhost", shell.vhost)
    assert "orders" in shell.does("--vhost", shell.vhost, "queue", "list", "--names").lines
    answer = shell("--vhost", shell.vhost, "queue", "list", "--vhost", "nobody")
    assert answer.code == 1
    assert "'nobody'" in answer.said


def test_a_missing_vhost_is_told_how_to_be_made(shell: Shell) -> None:
    answer = shell("queue", "list", "--vhost", "Q")
    assert answer.code == 1
    assert answer.said.count("\n") == 1
    assert "shmbroker vhost create Q" in answer.said
    answer = shell("queue", "list", "--vhost", shell.vhost[:-1])
    assert f"Did you mean '{shell.vhost}'" in answer.said  # first, if there are others


def modules_after(program: str) -> set[str]:
    text = f"import sys\n{program}\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return set(done.stderr.split()[-2000:])


def test_the_command_imports_next_to_nothing() -> None:
    loaded = modules_after("import shmbroker.cli.main")
    tops = {name.split(".")[0] for name in loaded}
    assert not tops & {"numba", "numpy", "llvmlite", "cffi", "_cffi_backend", "json", "difflib"}
    ours = {name for name in loaded if name.startswith("shmbroker.cli.")}
    assert ours == {f"shmbroker.cli.{name}" for name in ("main", "group", "suggestion")}


def test_a_read_verb_imports_what_it_needs(shell: Shell) -> None:
    loaded = modules_after(
        "from shmbroker.cli.main import root\n"
        f"root.main(['queue', 'list', '--vhost', {shell.vhost!r}], standalone_mode=False)"
    )
    tops = {name.split(".")[0] for name in loaded}
    assert not tops & {"numba", "numpy", "llvmlite", "difflib", "asyncio", "subprocess", "email"}
    others = {"publish", "subscribe", "producer", "consumer", "top", "check", "doctor", "vhost"}
    assert not loaded & {f"shmbroker.cli.{name}" for name in others}
    assert not {name for name in loaded if name.startswith("shmbroker.perf")}


# --- arguments that nobody means ------------------------------------------------------------------

ODD = ["9" * 23, "9" * 400, "-1", "0", "99999999999TiB", "9" * 20 + "d", "nan", "inf", "", "\udc80"]


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=IDS)
def test_an_odd_value_of_an_option_is_taken_or_refused(path: tuple[str, ...]) -> None:
    command = dict(COMMANDS)[path]
    context = click.Context(command)
    for option in command.params:
        if isinstance(option.type, (click.Path, click.File)):
            continue
        for value in ODD:
            said = ""
            try:
                option.type.convert(value, option, context)
            except click.UsageError as error:
                said = error.format_message()
            assert len(said) < 1000


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["producer", "--destination", "q", "--message-size", "9" * 23], 2, "is no size"),
        (["producer", "--destination", "q", "--message-size", "1TiB"], 2, "a quarter of its arena"),
        (["producer", "--destination", "q", "--message-count", "9" * 23], 2, "range"),
        (["create", "{}/i", "--set", "store.segment=99999999999TiB"], 1, "store.segment is a size"),
        (["create", "{}/i", "--set", "store.segment=5000B"], 1, "whole pages"),
        (["create", "{}/i", "--set", "ha.role=" + "[" * 100_000], 1, "ha.role is"),
        (["create", "{}/i", "--set", 'log.path="a\\u0000b"'], 1, "log.path is text"),
        (["journal", "verify", "{}/\udcff"], 1, "No such file"),
        (["x" * 100_000], 2, "no such command"),
        (["queue", "declare", "x" * 100_000], 1, "1 to 255 bytes"),
    ],
)
def test_what_nobody_means_is_said_in_short(
    vhost: str, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    shell = Shell(vhost)
    shell.does("queue", "declare", "q")
    answer = shell(*(word.replace("{}", str(tmp_path)) for word in words))
    assert answer.code == code, answer
    assert says in answer.said
    assert len(answer.said) < 3000
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_leads_nowhere(shell: Shell, closed: str) -> None:
    shell.does("queue", "declare", "orders")
    line = f"{COMMAND} pub orders coffee {closed} && {COMMAND} browse orders {closed}"
    done = subprocess.run(["sh", "-c", line], env=shell.environment, capture_output=True)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done
    assert shell.bodies("orders") == ["coffee"]


def test_a_journal_in_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "\udcff"
    folder.mkdir()
    with Journal(folder, segment_bytes=32 << 10) as journal:
        journal.message(1, 0, b"x")
        journal.commit()
    Shell("none").does("journal", "verify", str(folder))
    Shell("none").does("journal", "verify", str(folder), "--json")
