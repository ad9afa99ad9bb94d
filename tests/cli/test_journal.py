"""`shmbroker journal`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shmbroker.ipc.base.errors import InUse
from shmbroker.ipc.instance.unattended import unattended
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.journal import Journal
from tests.cli.command import Shell
from tests.support.until import until

SEGMENT_BYTES = 32 << 10


@pytest.fixture
def person() -> Shell:
    return Shell("none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal with segments, a queue and messages."""
    made = tmp_path / "journal"
    made.mkdir()
    with Journal(made, segment_bytes=SEGMENT_BYTES) as journal:
        journal.stage(records.QUEUE, 3, 0, b"orders")
        for position in range(60):
            journal.message(3, position, b"message %d" % position + bytes(1000))
            journal.commit()
        journal.stage(records.RETIRED, 3, 50)
        journal.commit()
    return made


def damage(folder: Path) -> Path:
    first = min(folder.iterdir())
    data = bytearray(first.read_bytes())
    data[9000] ^= 1
    first.write_bytes(data)
    return first


def test_verify(person: Shell, folder: Path) -> None:
    told = person.does("journal", "verify", str(folder), "--json").json
    assert (told["messages"], told["damages"], told["notes"]) == (60, 0, [])
    assert "messages  60" in person.does("journal", "verify", str(folder)).out
    first = damage(folder)
    answer = person("journal", "verify", str(folder))
    assert answer.code == 1
    assert f"{first}, offset 8" in answer.said


def test_print(person: Shell, folder: Path) -> None:
    command = ("journal", "print", str(folder))
    told = person.does(*command, "--queue", "3", "--count", "2", "--json").json
    assert [record["kind"] for record in told] == ["queue", "message"]
    assert "message 0" in person.does(*command).out


def test_print_cuts_off_the_frame_that_a_crash_has_torn(person: Shell, folder: Path) -> None:
    last = person.does("journal", "print", str(folder), "--json").json[-1]
    file = folder / last["segment"]
    data = bytearray(file.read_bytes())
    data[last["offset"]] ^= 1
    file.write_bytes(data)
    (folder / "reached").unlink(missing_ok=True)
    said = person.does("journal", "print", str(folder)).said
    assert "half written when a crash came" in said
    assert "damaged" not in said


def test_the_folder_of_an_instance_or_a_store_will_do(
    person: Shell, folder: Path, tmp_path: Path
) -> None:
    instance = str(tmp_path / "instance")
    person.does("create", instance, "--store", str(tmp_path))
    for each in (instance, str(tmp_path)):
        assert person.does("journal", "verify", each, "--json").json["messages"] == 60
    failed = person("journal", "print", str(tmp_path / "instance" / "log"))
    assert failed.code == 2
    assert "no file *.journal" in failed.said


def test_what_is_damaged_is_mended(person: Shell, folder: Path, tmp_path: Path) -> None:
    damage(folder)
    exported = person.does("journal", "export", str(folder))
    assert "offset" in exported.said
    positions = [json.loads(line)["position"] for line in exported.lines]
    mended = tmp_path / "mended"
    mended.mkdir()
    assert "61 records" in person.does(
        "journal", "import", str(mended), stdin=exported.out.encode()
    ).said  # fmt: skip
    assert person.does("journal", "verify", str(mended), "--json").json["messages"] == 59
    assert len(positions) == 61


def emptied(folder: Path) -> None:
    for each in folder.iterdir():
        each.unlink()


@pytest.mark.parametrize("named", ["one", "one/data", "one/data/journal"])
def test_import_writes_where_the_broker_reads(
    shell: Shell, start: Callable[..., object], tmp_path: Path, named: str
) -> None:
    broker, folder = tmp_path / "one", tmp_path / "one" / "data" / "journal"
    shell.does("create", str(broker), "--vhost", shell.vhost, "--set", "store.segment=1MiB")
    start("run", str(broker))
    shell.does("status", str(broker), "--wait", "live", "--timeout", "60s")
    shell.does("queue", "declare", "orders", "--durable")
    shell.does("producer", "--message-count", "10", "--destination", "queue://orders")
    shell.does("stop", str(broker), "--timeout", "60s")
    shell.does("vhost", "delete", shell.vhost, "--yes")
    exported = shell.does("journal", "export", str(broker)).out.encode()
    emptied(folder)
    if named == "one":
        folder.rmdir()
    said = shell.does("journal", "import", str(tmp_path / named), stdin=exported).said
    assert f"records to {folder}" in said
    assert shell.does("journal", "verify", str(broker), "--json").json["messages"] == 10
    if named == "one":
        assert {each.stat().st_size for each in folder.glob("*.journal")} == {1 << 20}
    assert shell("journal", "import", str(broker), stdin=exported).code == 1
    start("run", str(broker))
    shell.does("status", str(broker), "--wait", "live", "--timeout", "60s")
    assert shell.does("queue", "stat", "orders", "--json").json["depth"] == 10
    shell.does("stop", str(broker), "--timeout", "60s")


def test_half_of_an_import_is_not_what_a_broker_begins_with(
    shell: Shell, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    broker, journal = tmp_path / "one", tmp_path / "one" / "data" / "journal"
    shell.does("create", str(broker), "--vhost", shell.vhost, "--set", "store.segment=1MiB")
    lines = [b'{"kind": "message", "queue": 3, "position": %d, "body": ""}' % at for at in (0, 1)]
    failed = shell("journal", "import", str(broker), stdin=b"\n".join([*lines, b"torn"]))
    assert (failed.code, "line 3" in failed.said) == (1, True), failed
    assert not list(journal.glob("*.journal"))
    whole = b"\n".join(lines)
    assert "2 records" in shell.does("journal", "import", str(broker), stdin=whole).said
    emptied(journal)
    os.mkfifo(tmp_path / "lines")
    importing = start("journal", "import", str(broker), str(tmp_path / "lines"))
    with (tmp_path / "lines").open("wb", buffering=0) as file:
        file.write(lines[0] + b"\n")
        until(lambda: bool(list(journal.glob("*.journal"))))
        importing.kill()
        importing.wait()
    answer = shell("run", str(broker))
    assert (answer.code, "half of a journal" in answer.said) == (1, True), answer
    assert shell("journal", "import", str(broker), stdin=lines[0]).code == 1
    shutil.rmtree(journal)
    (broker / "data" / "importing").unlink()
    shell.does("journal", "import", str(broker), stdin=whole)
    shell.does("start", str(broker))
    shell.does("stop", str(broker), "--timeout", "60s")


def test_import_refuses_what_no_broker_would_read(person: Shell, tmp_path: Path) -> None:
    broker, store, folder = (tmp_path / name for name in ("one", "store", "journal"))
    person.does("create", str(broker), "--store", str(store), "--set", f"store.journal={folder}")
    line = b'{"kind": "message", "queue": 3, "position": 0, "body": ""}\n'

    def said(named: Path) -> str:
        answer = person("journal", "import", str(named), stdin=line)
        assert answer.code == 1
        assert not list(named.glob("*.journal"))
        return answer.said

    for each in (store / "journal", store / "mended", broker / "data", broker / "log"):
        each.mkdir(exist_ok=True)
        assert f"no broker would read a journal in {each}" in said(each)
        assert f"in {folder}" in said(each)
    assert "import into an empty folder" in said(tmp_path)
    for each in (broker, store):
        assert f"to {folder}" in person.does("journal", "import", str(each), stdin=line).said
        emptied(folder)
    file = broker / "shmbroker.toml"
    text = file.read_text()
    file.write_text(text.replace(str(folder), str(tmp_path / "other")))
    assert f"has its journal in {folder}, and store.journal is" in said(broker)
    file.write_text(text.replace(str(store), str(tmp_path / "unmounted")))
    assert "is no store" in said(broker)
    assert not (tmp_path / "unmounted").exists()


def test_compact(person: Shell, folder: Path) -> None:
    assert person("journal", "compact", str(folder)).code == 2
    before = sum(path.stat().st_size for path in folder.iterdir())
    person.does("journal", "compact", str(folder), "--segment", "32KiB", "--yes")
    assert sum(path.stat().st_size for path in folder.iterdir()) < before
    told = person.does("journal", "print", str(folder), "--json").json
    assert [r["position"] for r in told if r["kind"] == "message"] == list(range(50, 60))


def test_compact_makes_segments_as_the_journal_has_them(
    person: Shell, folder: Path, tmp_path: Path
) -> None:
    instance = str(tmp_path / "instance")
    person.does("create", instance, "--store", str(tmp_path), "--set", "store.segment=48KiB")
    configured = 48 << 10
    sizes = {str(folder): SEGMENT_BYTES, instance: configured, str(tmp_path): configured}
    for named, size in sizes.items():
        person.does("journal", "compact", named, "--yes")
        assert {each.stat().st_size for each in folder.glob("*.journal")} == {size}
    told = person.does("journal", "print", str(folder), "--json").json
    assert [r["position"] for r in told if r["kind"] == "message"] == list(range(50, 60))


def test_while_somebody_is_live_it_is_only_looked_at(
    shell: Shell, start: Callable[..., object], tmp_path: Path
) -> None:
    broker, store = tmp_path / "one", tmp_path / "store"
    shell.does("create", str(broker), "--vhost", shell.vhost, "--store", str(store),
               "--set", "store.segment=1MiB")  # fmt: skip
    folder = str(store / "journal")
    start("run", str(broker))
    told = shell.does("status", str(broker), "--wait", "live", "--timeout", "60s", "--json").json
    pid = told["process"]
    shell.does("queue", "declare", "orders", "--durable")
    shell.does("producer", "--message-count", "10", "--destination", "queue://orders")
    for command in (("compact", folder, "--yes"), ("import", folder)):
        answer = shell("journal", *command)
        assert answer.code == 1
        assert f"instance 'one' (pid {pid}) is live on store {store}" in answer.said
    assert shell.does("journal", "verify", folder, "--json").json["messages"] == 10
    shell.does("stop", str(broker), "--timeout", "60s")
    shell.does("journal", "compact", folder, "--yes", "--segment", "1MiB")
    assert shell.does("journal", "verify", folder, "--json").json["messages"] == 10


def test_a_journal_with_a_folder_of_its_own_is_under_the_lock_of_its_store(
    shell: Shell, start: Callable[..., object], tmp_path: Path
) -> None:
    broker, store, folder = (tmp_path / name for name in ("one", "store", "journal"))
    shell.does("create", str(broker), "--vhost", shell.vhost, "--store", str(store),
               "--set", f"store.journal={folder}")  # fmt: skip
    start("run", str(broker))
    shell.does("status", str(broker), "--wait", "live", "--timeout", "60s")
    for named in (broker, store):
        answer = shell("journal", "compact", str(named), "--yes")
        assert answer.code == 1
        assert f"is live on store {store}" in answer.said
        assert shell.does("journal", "verify", str(named), "--json").json["messages"] == 0
    assert f"somebody writes {folder}" in shell("journal", "compact", str(folder), "--yes").said
    shell.does("stop", str(broker), "--timeout", "60s")
    shell.does("journal", "compact", str(store), "--yes")


def test_a_journal_that_a_program_writes_is_not_compacted(person: Shell, folder: Path) -> None:
    with Journal(folder, segment_bytes=SEGMENT_BYTES) as journal:
        journal.message(3, 60, b"one more")
        journal.commit()
        answer = person("journal", "compact", str(folder), "--yes")
        assert answer.code == 1
        assert f"somebody writes {folder}" in answer.said


def test_nobody_becomes_live_while_a_journal_is_worked_on(
    shell: Shell, start: Callable[..., object], tmp_path: Path
) -> None:
    broker, store = tmp_path / "one", tmp_path / "store"
    shell.does("create", str(broker), "--vhost", shell.vhost, "--store", str(store))
    with unattended(store / "journal"):
        start("run", str(broker))
        shell.does("status", str(broker), "--wait", "passive", "--timeout", "60s")
        with pytest.raises(InUse, match="try again"), unattended(store / "journal"):
            raise AssertionError("two at once")
    shell.does("status", str(broker), "--wait", "live", "--timeout", "60s")


def test_a_folder_that_is_no_journal(person: Shell, tmp_path: Path) -> None:
    assert person("journal", "verify", str(tmp_path / "nothing")).code == 1
    (tmp_path / "0000000000000001.journal").write_bytes(b"noise")
    answer = person("journal", "print", str(tmp_path))
    assert answer.code == 0
    assert "0000000000000001.journal has 5 bytes: it was cut short" in answer.said
