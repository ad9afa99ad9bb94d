"""SEMANTICS 3.6: what only one member has is set aside, counted and shown, and never merged."""

from __future__ import annotations

import json
import os
import select
import shutil
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from shmbroker import Queue, Unconfirmed
from shmbroker.ipc.instance.whole import write_whole
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from shmbroker.netbridge.replica.aside import ASIDE, JOURNAL, SAVED
from tests.cli.command import Shell, eventually
from tests.netbridge.replicated.conftest import PATIENCE, Made, Node
from tests.netbridge.replicated.test_losing import JOINS, MANY, filled
from tests.netbridge.replicated.test_starting import QUICK

TAIL = [b"the tail %d" % number for number in range(5)]
QUICKLY = QUICK | JOINS | {"ha.replication.check-for-live-wait": "300ms"}
PATIENT = {"ha.replication.check-for-live-wait": "5s"}
"""So that nobody goes on alone because the machine is busy."""
ALONE = QUICKLY | {"ha.replication.on-partition": "continue-alone"}


def with_a_tail(made: Made) -> Node:
    """`a` has taken in what `b` lacks, and is dead; `b` serves."""
    two = made(QUICKLY).up()
    orders = filled(two)
    two.stands_still("b")
    two.says("a", "suspended")
    for body in TAIL:
        unconfirmed(orders, body)
    eventually(lambda: tail_is_written(two["a"].folder / "data" / JOURNAL))
    two["a"].kill()
    two.goes_on("b")
    two["b"].becomes("live")
    return two


def unconfirmed(orders: Queue, body: bytes) -> None:
    with pytest.raises(Unconfirmed):
        orders.publish(body, timeout=0.05)


def tail_is_written(journal: Path) -> bool:
    """A live writes on there: a replay may take a frame that is half written for damage."""
    written = b"".join(each.read_bytes() for each in journal.glob("*.journal"))
    return all(body in written for body in TAIL)


def lines(node: Node, name: str) -> list[dict[str, Any]]:
    return [each for each in node[name].said() if each["event"] == "diverged"]


def in_lines(text: str) -> list[bytes]:
    """The chunks of messages, in the format of `journal export`."""
    found = [json.loads(line) for line in text.splitlines()]
    return [b64decode(each["body"]) for each in found if each["kind"] == "message"]


def in_journal(folder: Path) -> list[bytes]:
    with Replay(folder) as replay:
        return [each.body for each in replay if each.kind == records.MESSAGE]


def ends(chunks: list[bytes]) -> list[bool]:
    return [body in chunk for body, chunk in zip(TAIL, chunks, strict=True)]


def test_a_tail_is_counted_on_both_sides_and_exported(node: Made, tmp_path: Path) -> None:
    two = with_a_tail(node)
    two.connected("b").queue("orders").publish(b"of b", timeout=PATIENCE)
    two["a"].start()
    two.says("a", "in sync")
    assert two.bodies("b") == [*MANY, b"of b"], "nothing is merged"
    two.logs("b", "diverged")
    for name in ("a", "b"):
        (line,) = lines(two, name)
        told = {key: line[key] for key in ("level", "member", "messages", "exact", "epoch")}
        assert told == {
            "level": "error", "member": "a", "messages": 5, "exact": True, "epoch": 1,
        }  # fmt: skip
    shell, folder = Shell("none"), str(two["a"].folder)
    (kept,) = shell.does("journal", "diverged", "list", folder, "--json").json
    assert (kept["number"], kept["messages"], kept["holder"]) == (1, 5, "a")
    assert kept["at"]
    told = shell.does("journal", "diverged", "export", folder, "1").out
    assert all(ends(in_lines(told)))
    assert shell("journal", "diverged", "export", folder, "7").code == 1
    (tmp_path / "mended").mkdir()
    shell.does("journal", "import", str(tmp_path / "mended"), stdin=told.encode())
    assert in_journal(tmp_path / "mended") == in_lines(told)


def test_both_went_on_and_meet_again(node: Made) -> None:
    two = node(ALONE).up()
    filled(two)
    two.stands_still("b")
    two.says("a", "alone")
    orders = two.connected("a").queue("orders")
    orders.publish(b"of a", timeout=PATIENCE)
    two.stands_still("a")
    two.goes_on("b")
    two["b"].becomes("live")
    orders = two.connected("b").queue("orders")
    for body in TAIL:
        orders.publish(body, timeout=PATIENCE)
    two.goes_on("a")
    two.says("b", "in sync")
    two.says("a", "in sync")
    assert two.bodies("a") == [*MANY, b"of a"], "the preferred one stays, and nothing is merged"
    two.logs("a", "diverged")
    for name in ("a", "b"):
        (line,) = lines(two, name)
        assert (line["member"], line["messages"], line["exact"]) == ("b", 5, True)
    told = Shell("none").does("journal", "diverged", "export", str(two["b"].folder), "1").out
    assert all(ends(in_lines(told)))


HOLDS_UP = """
import sys

if "diverged" in " ".join(sys.orig_argv):
    open({pipe!r}).read()
"""
"""The process that counts waits when it starts, until somebody who has the pipe open closes it."""


@contextmanager
def nobody_counts(pipe: Path) -> Iterator[None]:
    """As soon as somebody has begun to."""
    opened: list[int] = []
    opens = threading.Thread(target=lambda: opened.append(os.open(pipe, os.O_WRONLY)), daemon=True)
    opens.start()
    opens.join(PATIENCE)
    assert opened, "nobody has begun to count"
    try:
        yield
    finally:
        os.close(opened[0])


def the_former_one_has_counted(folder: Path) -> None:
    """The process that counts for a member outlives it if that is killed."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError, IndexError):  # it has ended, or has fewer words
            words = each.read_bytes().split(b"\0")
            if b"diverged" in words[2] and str(folder).encode() in words[3]:
                file = os.pidfd_open(int(each.parent.name))
                assert select.select([file], [], [], PATIENCE)[0]
                os.close(file)


def test_nothing_waits_while_a_set_is_counted(
    node: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = node(ALONE | PATIENT).up()
    filled(two)
    two["b"].kill()
    the_former_one_has_counted(two["b"].folder)
    store, pipe = two["b"].folder / "data", tmp_path / "pipe"
    shutil.copytree(store / JOURNAL, store / f"{SAVED}1")
    write_whole(store / f"{SAVED}1" / ASIDE, {"at": "some day"}, synced=False)
    os.mkfifo(pipe)
    (tmp_path / "sitecustomize.py").write_text(HOLDS_UP.format(pipe=str(pipe)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    two["b"].start()
    with nobody_counts(pipe):
        two.says("b", "in sync")
        two["a"].kill()
        two["b"].becomes("live")
    assert two.bodies("b") == MANY
