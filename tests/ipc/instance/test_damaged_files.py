"""Each file of an instance and its store, damaged: it starts all the same, or says why not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.lock.record import LIVE, Record, RecordFile, decoded
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import bodies, is_announced, put
from tests.support.runs import PATIENCE_SECONDS, Run, Settings

Damage = Callable[[Path], object]


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(bytes((37 * number + 11) % 256 for number in range(700)))


def cut(path: Path) -> None:
    os.truncate(path, 60)


def nested(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


def of_other_kinds(path: Path) -> None:
    """JSON, of which each value is of a kind that nobody expects."""
    head, brace, rest = path.read_bytes().partition(b"{")
    fields = json.loads(brace + rest)
    path.write_bytes(head + json.dumps({key: {"pid": "1"} for key in fields}).encode())


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def link_to_itself(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path)


CONTENTS = (emptied, noise, cut, nested)
KINDS = (folder, link_to_itself)


@contextmanager
def damaged(path: Path, damage: Damage) -> Iterator[None]:
    """For as long as it lasts."""
    was = path.read_bytes()
    inode = path.with_name("kept")
    os.link(path, inode)  # as it is: who is put back is the same file
    try:
        damage(path)
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        inode.rename(path)
        path.write_bytes(was)


def refused(run: Run, *words: str) -> None:
    """It ends with 1, and says why: on stderr and in its log."""
    (run.folder / "errors").unlink(missing_ok=True)
    assert run.start().ends() == 1
    said = run.errors()
    assert said.splitlines()[-1].startswith("shmbroker: "), said  # behind what it is and where
    assert "Traceback" not in said
    why = run.why("failed")
    for word in words:
        assert word in said
        assert word in why


@pytest.fixture
def run(make: Make, vhost: str) -> Run:
    """It was live, and has a message."""
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    assert live.stop() == 0
    return live


@pytest.fixture
def store(run: Run) -> Path:
    return run.folder.parent / "store"


@pytest.fixture
def locked() -> Settings:
    return {}


# --- the store ------------------------------------------------------------------------------------


def test_a_damaged_node_is_named_and_made_anew_when_it_is_said_that_nobody_else_has_it(
    run: Run, store: Path, vhost: str
) -> None:
    node = json.loads((store / "node").read_text())
    for damage in (*CONTENTS, *KINDS, of_other_kinds, gone):
        with damaged(store / "node", damage):
            refused(run, f"{store / 'node'}", "--moved" if damage not in KINDS else "move it away")
    for damage in (emptied, gone):
        damage(store / "node")
        run.start(moved=True).becomes("live")
        run.stop()
        assert json.loads((store / "node").read_text()) == node
    assert bodies(vhost) == [b"1"]


@pytest.mark.parametrize("damage", [*CONTENTS, of_other_kinds])
def test_a_damaged_record_of_a_store_that_nobody_holds_is_made_anew(
    run: Run, store: Path, vhost: str, damage: Damage
) -> None:
    before = decoded((store / "live.lock").read_bytes())
    damage(store / "live.lock")
    run.start().becomes("live")
    assert run.status.epoch > before.epoch
    assert str(store / "live.lock") in run.why("live.lock was made anew")
    assert bodies(vhost) == [b"1"]
    put(vhost, b"2")
    assert run.stop() == 0
    assert run.start().becomes("live").stop() == 0
    assert bodies(vhost) == [b"1", b"2"]


def test_the_epoch_is_above_all_that_were_written(run: Run, store: Path) -> None:
    """Of some nothing is left but that somebody, somewhere, may still have one."""
    lock = RecordFile(store)
    lock.write(Record(1000, LIVE, "elsewhere"))  # it had not begun its first segment
    lock.close()
    emptied(store / "live.lock")
    run.start().becomes("live")
    assert run.status.epoch > 1000


def test_a_backup_makes_it_anew_when_its_live_has_died(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    put(vhost, b"1")
    noise(live.folder.parent / "store" / "live.lock")
    live.kill()
    backup.becomes("live")
    put(vhost, b"2")
    assert bodies(vhost) == [b"1", b"2"]


def test_what_a_live_that_runs_holds_is_left_to_it(make: Make) -> None:
    live = make("a").start().becomes("live")
    noise(live.folder.parent / "store" / "live.lock")
    refused(make("b"), "live.lock", "end the process that holds it")


def test_a_live_whose_record_is_damaged_ends_and_says_so(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    with ThreadPoolExecutor(1) as waiting:
        waits = waiting.submit(status.wait_for, live.folder, "passive", 2 * PATIENCE_SECONDS)
        noise(live.folder.parent / "store" / "live.lock")
        with (
            shmbroker.connect(f"shm://{vhost}") as broker,
            pytest.raises(shmbroker.Unconfirmed),
        ):
            broker.queue("orders").publish(b"2", timeout=0.2)
        assert live.ends() == 1
        assert waits.result(PATIENCE_SECONDS) is None, "who has failed becomes nothing else"
    assert "live.lock) is damaged" in live.why("failed")
    assert "live.lock) is damaged" in live.errors()
    live.start().becomes("live")
    assert bodies(vhost) == [b"1", b"2"]


def test_rings_of_which_nobody_knows_whether_they_are_the_last_are_left_alone(
    run: Run, store: Path, vhost: str
) -> None:
    was_live = run.folder / "run" / "rings"
    known = was_live.read_bytes()
    was_live.unlink()
    emptied(store / "live.lock")
    refused(run, "vhost delete")
    was_live.write_bytes(known)
    assert bodies(vhost) == [b"1"]


def test_a_lock_that_is_gone_is_made_anew_when_it_is_said_that_nobody_else_has_it(
    run: Run, store: Path, vhost: str
) -> None:
    for damage in (gone, *KINDS):
        with damaged(store / "live.lock", damage):
            refused(run, f"{store / 'live.lock'}", "--moved" if damage is gone else "move it away")
    gone(store / "live.lock")
    run.start(moved=True).becomes("live")
    assert bodies(vhost) == [b"1"]


@pytest.mark.parametrize("name", ["journal", "pages"])
def test_a_file_where_a_folder_should_be(run: Run, store: Path, name: str) -> None:
    if (store / name).exists():
        shutil.rmtree(store / name)
    (store / name).touch()
    refused(run, str(store / name))


def test_a_folder_that_is_gone(run: Run, store: Path) -> None:
    shutil.rmtree(store)
    refused(run, f"{store} is no store")


def test_who_asks_for_the_role_in_nonsense_asks_for_nothing(run: Run, store: Path) -> None:
    run.start().becomes("live")
    for damage in (emptied, noise, nested, folder):
        damage(store / "failback")
    lock = RecordFile(store)
    assert lock.read().state == LIVE
    os.pwrite(lock.number, os.pread(lock.number, 512, 0), 0)  # there is news: it looks
    lock.close()
    assert run.stop() == 0
    assert run.events()[-1] == "stopped"


# --- the instance ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run/status", "run/rings"])
def test_what_it_said_of_itself_before_is_not_needed(run: Run, name: str) -> None:
    path = run.folder / name
    for damage in (*CONTENTS, of_other_kinds):
        damage(path)
        run.start().becomes("live").stop()


@pytest.mark.parametrize("name", ["run/status", "run/rings", "run/lock"])
def test_a_file_of_run_that_is_none_is_named(run: Run, name: str) -> None:
    for damage in KINDS:
        with damaged(run.folder / name, damage):
            refused(run, str(run.folder / name), "move it away")


def test_a_log_that_cannot_be_written_is_named(run: Run) -> None:
    log = run.folder / "log" / "shmbroker.log"
    for damage in KINDS:
        with damaged(log, damage):
            assert run.start().ends() == 1
            assert f"shmbroker: {log}: " in run.errors()


def test_a_configuration_that_cannot_be_read_is_named(run: Run) -> None:
    path = run.folder / "shmbroker.toml"
    for damage in (noise, nested, *KINDS):
        with damaged(path, damage):
            (run.folder / "errors").unlink(missing_ok=True)
            assert run.start().ends() == 1
            assert run.errors().startswith(f"shmbroker: {path}: ")
            assert len(run.errors()) < 1000


@pytest.mark.parametrize("name", ["beat", "catalog"])
def test_a_folder_in_dev_shm_is_named(run: Run, vhost: str, name: str) -> None:
    path = Path(f"/dev/shm/shmbroker.{vhost}.{name}")
    path.unlink(missing_ok=True)
    path.mkdir()
    try:
        refused(run, str(path))
    finally:
        path.rmdir()


# --- what the process may not have ----------------------------------------------------------------


@pytest.mark.parametrize("room", [12, 14, 16, 18])
def test_too_few_descriptors(make: Make, room: int) -> None:
    run = make("a")
    run.limited = {"RLIMIT_NOFILE": room}
    assert run.start().ends() == 1
    assert "open files" in run.errors()
    assert "ulimit -n" in run.errors()
