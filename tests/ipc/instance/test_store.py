"""The folder that live and backup share: what is refused, and what the locks do."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.base.trust import make_folder
from shmbroker.ipc.instance import mount, process, store
from shmbroker.ipc.instance.lock import lock_test, ofd, record
from shmbroker.ipc.instance.lock.file_lock import FileLock
from shmbroker.ipc.instance.lock.record import Record, RecordDamaged, RecordFile
from shmbroker.ipc.instance.store import Store, StoreRefused
from tests.support.runs import PATIENCE_SECONDS


@pytest.fixture
def place(tmp_path: Path) -> Path:
    store.create(tmp_path / "data", "orders")
    return tmp_path / "data"


def test_a_store_is_made_once(place: Path) -> None:
    node = (place / "node").read_text()
    store.create(place, "orders")
    assert (place / "node").read_text() == node


def test_two_that_make_a_store_at_once_have_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a live and its backup that are made by two commands at once."""
    place, both = tmp_path / "data", threading.Barrier(2)

    def made_at_once(folder: Path) -> None:
        both.wait(PATIENCE_SECONDS)  # neither has found a node
        make_folder(folder)

    def made(_: int) -> tuple[int, str]:
        store.create(place, "orders")
        return (place / record.FILE).stat().st_ino, (place / "node").read_text()

    monkeypatch.setattr(store, "make_folder", made_at_once)
    with ThreadPoolExecutor() as threads:
        first, second = threads.map(made, range(2))
    assert first == second, "who is quick may run already"
    Store(place, "orders")


def test_nobody_was_live_in_a_new_one(place: Path) -> None:
    assert RecordFile(place).read() == Record()


def test_a_store_of_another_vhost_is_refused(place: Path) -> None:
    with pytest.raises(StoreRefused, match="of vhost 'orders', not of 'bills'"):
        Store(place, "bills")


def test_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="shmbroker create"):
        Store(tmp_path, "orders")


def test_a_copy_is_refused_until_it_is_said_to_be_the_original(place: Path) -> None:
    copy = place.with_name("copy")
    shutil.copytree(place, copy)
    with pytest.raises(StoreRefused, match=r"is a copy.*--moved"):
        Store(copy, "orders")
    Store(copy, "orders", moved=True)
    Store(copy, "orders")


def test_a_copy_goes_on_in_another_history(place: Path) -> None:
    """The original may have used positions that the copy uses for other messages."""
    copy = place.with_name("copy")
    shutil.copytree(place, copy)
    Store(copy, "orders", moved=True)
    history = store.history_of(copy)
    assert history != store.history_of(place) == 0
    Store(copy, "orders", moved=True)
    assert store.history_of(copy) == history, "it is the original by now"


def test_a_store_that_was_renamed_is_no_copy(place: Path) -> None:
    Store(place.rename(place.with_name("elsewhere")), "orders")


# --- the record -----------------------------------------------------------------------------------


def test_a_record_is_one_sector_and_comes_back(place: Path) -> None:
    lock = FileLock(place)
    written = Record(7, record.LIVE, "café", process.this(), -(1 << 62))
    assert len(written.encoded()) == record.BYTES
    lock.write(written)
    assert lock.record() == written
    assert lock.file.path.read_bytes()[:16] == b"0000000000000007"


@pytest.mark.parametrize("content", [
    b"", b"\0" * 512, b"0000000000000007\n{", b"7", b"x" * 512,
    b'0000000000000007\n{"state": "alive", "process": null}',
    b'0000000000000007\n{"state": "live", "process": {"pid": 1}}',
    b'0000000000000007\n[1]', b"\xff" * 512,
])  # fmt: skip
def test_what_is_no_record_is_said_to_be_none(content: bytes) -> None:
    with pytest.raises(RecordDamaged):
        record.decoded(content)


@pytest.mark.parametrize("letter", ["x", "ж", "\U0001f680", '"', "\x01"])
def test_a_name_of_any_length_is_no_reason_not_to_be_live(letter: str) -> None:
    """It is cut, and that of a folder is not: it has 255 bytes at most."""
    of_folder = letter * (255 // len(letter.encode()))
    for name in (of_folder, letter * 1000):
        longest = max(record.ENDS, key=len)
        written = Record(record.EPOCH_MAX, longest, name, process.this(), -(1 << 62))
        assert len(written.encoded()) == record.BYTES
        read = record.decoded(written.encoded())
        assert replace(read, instance=name) == written
        assert name.startswith(read.instance)
        assert len(read.instance) >= 40
    if letter.isprintable() and letter != '"':
        assert record.decoded(replace(written, instance=of_folder).encoded()).instance == of_folder


# --- locks ----------------------------------------------------------------------------------------


def test_live_and_announced_are_two_locks(place: Path) -> None:
    one, two = FileLock(place), FileLock(place)
    assert one.try_live()
    assert not two.try_live()
    assert two.another_is_live
    two.wait_announced()
    assert one.another_is_announced
    assert not two.another_is_announced, "it is its own"
    two.release_announced()
    assert not one.another_is_announced


def test_who_waits_is_woken_when_the_lock_is_let_go(place: Path) -> None:
    one, two = FileLock(place), FileLock(place)
    one.try_live()
    waiting = threading.Thread(target=two.wait_live)
    waiting.start()
    one.release_live()
    waiting.join(60)
    assert not waiting.is_alive()
    assert one.another_is_live


def test_closing_another_descriptor_drops_nothing(place: Path) -> None:
    """As a lock of the process would: why it is a lock of the open file."""
    one, two = FileLock(place), FileLock(place)
    assert one.try_live()
    os.close(os.open(one.file.path, os.O_RDWR))
    assert not two.try_live()


def test_locks_work_here(tmp_path: Path) -> None:
    lock_test.check(tmp_path)
    assert not list(tmp_path.iterdir())


def granted(_file: int, _byte: int) -> bool:
    return True


def test_where_every_lock_is_granted_no_store_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ofd, "try_lock", granted)
    with pytest.raises(lock_test.LocksDoNotWork, match="two descriptors of one process"):
        store.create(tmp_path / "data", "orders")
    assert not (tmp_path / "data" / "node").exists()


def test_where_processes_do_not_see_each_others_locks_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS with local_lock on two hosts; here the child believes that it got it."""
    parent, real = os.getpid(), ofd.try_lock
    monkeypatch.setattr(
        ofd, "try_lock", lambda file, byte: os.getpid() != parent or real(file, byte)
    )
    with pytest.raises(lock_test.LocksDoNotWork, match="two processes hold the same lock"):
        lock_test.check(tmp_path)


def test_where_locking_fails_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_file: int, _byte: int) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(ofd, "try_lock", fails)
    with pytest.raises(lock_test.LocksDoNotWork, match="No locks available"):
        lock_test.check(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SystemRefused, match="No such file"):
        lock_test.check(tmp_path / "nowhere")


# --- mounts ---------------------------------------------------------------------------------------

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:40 / /mnt/a\\040b rw,relatime shared:2 - nfs4 server:/a rw,sync,vers=4.2,noac,soft,\
lookupcache=none,proto=tcp,timeo=50,retrans=1
31 22 0:41 / /mnt/plain rw,relatime - nfs4 server:/b rw,vers=4.2,hard,proto=tcp,timeo=600,retrans=2
32 31 0:42 / /mnt/plain/disk rw,relatime - xfs /dev/vdb rw
"""


def test_the_mount_is_the_nearest() -> None:
    assert mount.mount_of(Path("/mnt/a b/store"), MOUNTS).kind == "nfs4"
    assert mount.mount_of(Path("/mnt/plain/disk/x"), MOUNTS).kind == "xfs"
    assert mount.mount_of(Path("/mnt/plainly"), MOUNTS).kind == "ext4"


def test_names_of_other_mounts_stop_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel escapes blanks and ends of lines in them; a source may be empty."""
    table = tmp_path / "mountinfo"
    others = (
        b"33 22 0:43 / /media/\xfcber rw - vfat /dev/sdb1 rw\n",
        b"34 22 0:44 / /media/a\xc2\x85b rw - vfat /dev/sdc1 rw\n",
        b"35 22 0:45 / /mnt/none rw - tmpfs  rw,size=4k\n",
    )
    table.write_bytes(MOUNTS.encode() + b"".join(others))
    monkeypatch.setattr(mount, "MOUNTS", table)
    assert mount.mount_of(Path("/mnt/plain/disk/x")).kind == "xfs"
    assert mount.mount_of(Path(os.fsdecode(b"/media/\xfcber/x"))).kind == "vfat"
    assert mount.mount_of(Path("/mnt/none")).kind == "tmpfs"


def test_a_mount_as_it_should_be_gives_no_warning() -> None:
    found = mount.mount_of(Path("/mnt/a b"), MOUNTS)
    assert found.is_remote
    assert mount.warnings(found) == []


def test_each_option_that_is_missing_is_a_warning_that_says_why() -> None:
    found = mount.warnings(mount.mount_of(Path("/mnt/plain/x"), MOUNTS))
    assert len(found) == 5
    for option, why in mount.WANTED.items():
        assert any(option in each and why in each for each in found)
    assert "only after 180 s" in found[-1]


def test_a_local_disk_needs_no_options() -> None:
    assert mount.warnings(mount.mount_of(Path("/mnt/plain/disk"), MOUNTS)) == []
    assert mount.mount_of(Path("/proc")).kind == "proc", "the real table is read too"


def test_a_journal_of_its_own_is_named_the_same_by_all(tmp_path: Path) -> None:
    place, journal = tmp_path / "data", tmp_path / "journal"
    store.create(place, "orders", journal=journal)
    assert Store(place, "orders", journal=journal).journal == journal
    for other in (None, tmp_path / "another"):
        with pytest.raises(StoreRefused, match=r"live and backup name the same"):
            Store(place, "orders", journal=other)
    journal.rename(tmp_path / "another")
    Store(place, "orders", journal=tmp_path / "another", moved=True)
    Store(place, "orders", journal=tmp_path / "another")
