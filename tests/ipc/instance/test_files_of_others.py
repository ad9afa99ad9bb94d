"""The files of an instance, and other users of the host: what they put there is not used."""

from __future__ import annotations

import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.base.errors import SystemRefused, Untrusted
from shmbroker.ipc.instance import beat, process, status, store
from shmbroker.ipc.instance.beat import Beat
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.lock.record import RecordFile
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.status import Sign, Status
from shmbroker.ipc.instance.store import Store
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.ipc.spool.spool import Spool
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.other_user import OTHER, as_other, segments
from tests.support.runs import Run

WE = os.getuid()
EPOCH = 7


@pytest.fixture(params=["file"])
def locked(request: pytest.FixtureRequest) -> dict[str, object]:
    """The kind of lock is no matter here."""
    return {}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder in which every user may make files."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of ours, which nobody else shall make us write."""
    path = tmp_path / "victim"
    path.write_bytes(b"as it was")
    return path


def given(vhost: str, **others: object) -> dict[str, object]:
    return {"instance.vhost": vhost, "instance.arena": "16MiB", **others}


# --- a vhost that is another user's ---------------------------------------------------------------


def test_a_broker_refuses_the_vhost_of_another_user_and_leaves_nothing_in_it(
    make: Callable[..., Run], vhost: str
) -> None:
    run = make("a")
    as_other(lambda: vhosts.create(vhost, arena_bytes=1 << 20))
    there = {path: path.stat() for path in segments(vhost)}
    assert run.start().ends() == 1
    assert f"user {OTHER}" in run.said()[-1]["why"]
    assert "mode 0600" in run.said()[-1]["why"]
    assert {path: path.stat() for path in segments(vhost)} == there


def test_it_does_so_as_well_where_others_may_write_it(make: Callable[..., Run], vhost: str) -> None:
    run = make("a")
    vhosts.create(vhost, arena_bytes=1 << 20)
    for path in segments(vhost):
        path.chmod(0o666)
    assert run.start().ends() == 1
    assert "chmod 600" in run.said()[-1]["why"]
    assert {path.name.rpartition(".")[2] for path in segments(vhost)} == {
        "arena", "catalog", "participants", "transactions"
    }  # fmt: skip


# --- the beat -------------------------------------------------------------------------------------


@pytest.fixture
def named() -> Iterator[str]:
    with vhost_for_a_while() as name:
        yield name


def told(path: Path, epoch: int = EPOCH) -> None:
    path.write_bytes(struct.pack("qq", time.monotonic_ns(), epoch))


@pytest.mark.parametrize("target", ["victim", "nothing"])
def test_no_beat_is_written_through_a_link(named: str, victim: Path, target: str) -> None:
    path = beat.path_of(named)
    pointed = victim.with_name(target)
    as_other(lambda: path.symlink_to(pointed))
    Beat(named).begin(EPOCH)
    assert victim.read_bytes() == b"as it was"
    assert not victim.with_name("nothing").exists()
    assert stat.S_ISREG(path.lstat().st_mode)
    assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (WE, 0o600)
    assert beat.age_of(named, EPOCH) is not None


def test_no_beat_is_written_into_the_file_of_another_user(named: str) -> None:
    path = beat.path_of(named)
    as_other(lambda: told(path))
    Beat(named).begin(EPOCH)
    assert path.stat().st_uid == WE
    assert path.stat().st_size == beat.BYTES


def test_a_place_that_another_user_keeps_is_named(named: str) -> None:
    path = beat.path_of(named)
    path.touch(0o600)

    def begin() -> None:
        with pytest.raises(Untrusted, match=f"{path}.*user {WE}"):
            Beat(named)

    as_other(begin)


def test_a_beat_of_another_user_kills_nobody(named: str) -> None:
    """What it says of an old epoch would have the backup kill the live."""
    path = beat.path_of(named)
    as_other(lambda: told(path))
    assert beat.age_of(named, EPOCH) is None
    path.unlink()
    told(path)
    path.chmod(0o600)
    assert beat.age_of(named, EPOCH) is not None
    path.rename(moved := path.with_name(f"{path.name}.moved"))
    path.symlink_to(moved)
    assert beat.age_of(named, EPOCH) is None
    path.unlink()
    os.mkfifo(path)
    assert beat.age_of(named, EPOCH) is None, "and it does not wait for a writer"


# --- every file that is opened by a name ----------------------------------------------------------

OPENED: dict[str, Callable[[Path], object]] = {
    "live.lock": RecordFile,
    "node": lambda folder: read_whole(folder / "node"),
    "status": lambda folder: read_whole(folder / "status"),
    "log": lambda folder: Log(folder / "log", "a"),
    "run/lock": Sign,
}


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.parametrize("kind", ["link", "file", "pipe", "writable"])
def test_what_another_user_has_put_there_is_not_used(
    shared: Path, victim: Path, name: str, kind: str
) -> None:
    path = shared / name
    if path.parent != shared:
        path.parent.mkdir()
        path.parent.chmod(0o1777)

    if kind == "link":
        path.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"{}")
    if kind == "writable":
        path.chmod(0o666)
    else:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(SystemRefused, match=str(path)):
        OPENED[name](shared)
    assert victim.read_bytes() == b"as it was"


def test_a_new_status_is_not_written_through_a_link(shared: Path, victim: Path) -> None:
    path = shared / "status"
    (shared / f".status-{os.getpid()}").symlink_to(victim)
    path.symlink_to(victim)
    write_whole(path, {"a": 1})
    assert victim.read_bytes() == b"as it was"
    assert read_whole(path) == {"a": 1}
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600


def test_a_link_of_ours_where_nobody_else_can_put_one_is_followed(
    tmp_path: Path, victim: Path
) -> None:
    """A log that is kept elsewhere, say."""
    (tmp_path / "log").symlink_to(victim)
    Log(tmp_path / "log", "a").write("begun")
    assert b"begun" in victim.read_bytes()


def test_a_spool_is_not_written_through_links(shared: Path, victim: Path, named: str) -> None:
    vhosts.create(named, arena_bytes=1 << 20)
    path = shared / f"here-{named}.lock"
    path.symlink_to(victim)
    with pytest.raises(Untrusted, match=str(path)):
        Spool(f"shm://{named}", shared, host="here", parquet=False)
    path.unlink()
    part = shared / f"here-{named}-1.hlog.part"
    part.symlink_to(victim)
    with pytest.raises(Untrusted, match=str(part)):
        Spool(f"shm://{named}", shared, host="here", parquet=False)
    assert victim.read_bytes() == b"as it was"


def test_a_store_of_another_user_is_refused(tmp_path: Path) -> None:
    store.create(tmp_path / "data", "orders")
    os.chown(tmp_path / "data" / "journal", OTHER, OTHER)
    with pytest.raises(Untrusted, match=f"journal belongs to user {OTHER}"):
        Store(tmp_path / "data", "orders")


def test_segments_of_the_journal_of_another_user_are_not_read(
    make: Callable[..., Run], vhost: str
) -> None:
    run = make("a").start()
    run.becomes("live").stop()
    vhosts.delete(vhost)
    for path in run.folder.parent.glob("store/journal/*.journal"):
        os.chown(path, OTHER, OTHER)
    assert run.start().ends() == 1
    assert f"user {OTHER}" in run.said()[-1]["why"]


def test_root_signals_no_process_that_the_status_of_another_user_names(tmp_path: Path) -> None:
    folder = tmp_path / "instance"
    create(folder, given("orders"))
    sign = Sign(folder)
    sign.show(Status("live", process=process.this()))
    os.chown(folder / "run" / "status", OTHER, OTHER)
    with pytest.raises(Untrusted, match=f"user {OTHER}, and names process {os.getpid()}"):
        status.signalled(folder, 0, 1)  # type: ignore[arg-type]
    sign.close()


# --- modes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_an_instance_and_its_store_do_not_follow_the_umask(
    make: Callable[..., Run], tmp_path: Path, vhost: str, umask: int
) -> None:
    before = os.umask(umask)
    try:
        run = make("a", spool__path="spool").start()
        run.becomes("live")
        with shmbroker.connect(f"shm://{vhost}") as broker:
            broker.declare_queue("orders", durable=True, when_full="page").publish(b"1")
        run.stop()
    finally:
        os.umask(before)
    for top in (run.folder, tmp_path / "store"):
        for path in (top, *top.rglob("*")):
            if "spool" in path.parts or path.name == "errors":
                continue
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), f"{path}: {mode:o}"
    spool = run.folder / "spool"
    assert not any(path.stat().st_mode & 0o022 for path in (spool, *spool.iterdir()))


# --- whom we tell that we have started ------------------------------------------------------------


def test_a_live_whose_start_nobody_wants_to_hear_of_hears_what_is_said_to_it(
    make: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd reads its socket; something else may not, and then it is full."""
    path = str(tmp_path / "notify")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others,
    ):
        manager.bind(path)
        others.setblocking(False)
        others.connect(path)
        with pytest.raises(BlockingIOError):
            while True:
                others.send(b"READY=1")
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        run = make("a").start()
        run.becomes("live")
        assert run.stop() == 0


def test_a_live_whose_manager_is_gone_is_live(
    make: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    run = make("a").start()
    run.becomes("live")
    assert run.stop() == 0
    assert any("NOTIFY_SOCKET" in line.get("why", "") for line in run.said())
