"""Backups of a store: taken under load, verified, continued, restored."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from multiprocessing import Process
from pathlib import Path
from typing import Final

import pytest

import shmbroker
from shmbroker import Empty, NotFound
from shmbroker.ipc.base.errors import DiskFull, InvalidArgument, JournalDamaged
from shmbroker.ipc.instance import backup, restoration, store
from shmbroker.ipc.instance.backup import Backup
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.restoration import restore
from shmbroker.ipc.instance.whole import write_whole
from shmbroker.ipc.journal.replay import segment_name
from shmbroker.ipc.vhost import vhost as vhosts
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import bodies, put
from tests.support.runs import PATIENCE_SECONDS, Run, Settings
from tests.support.small_disk import small_disk

PACE_SECONDS = 0.01
"""Between batches: segments are of the smallest size, and a backup gives up when they are written
anew faster than it can read them."""
BATCH = 50
PADDING = bytes(2000)
SLOTS = 1024
LEFT = 4000
"""So many wait in pages at least, when a backup is taken."""


@pytest.fixture
def locked() -> Settings:
    """What is tested here does not depend on the kind of lock."""
    return {}


def numbered(first: int) -> list[bytes]:
    return [number.to_bytes(4, "big") + PADDING for number in range(first, first + BATCH)]


class Load:
    """One thread publishes to three durable queues; one takes from two of them.

    `kept` is taken from by nobody, `flow` keeps nothing, so segments are recycled; `paged` pages.
    """

    def __init__(self, vhost: str) -> None:
        self.vhost, self.confirmed, self.is_over = vhost, 0, False
        self.taken = 0
        self.news = threading.Condition()
        self._threads = [threading.Thread(target=each) for each in (self._publish, self._take)]

    def _publish(self) -> None:
        with shmbroker.connect(f"shm://{self.vhost}") as broker:
            kept = broker.declare_queue("kept", durable=True, slots=1 << 16)
            flow = broker.declare_queue("flow", durable=True)
            paged = broker.declare_queue("paged", durable=True, slots=SLOTS, when_full="page")
            while not self.is_over:
                kept.publish(self.confirmed.to_bytes(4, "big"), timeout=PATIENCE_SECONDS)
                for queue in (flow, paged):
                    queue.publish_many(numbered(self.confirmed * BATCH), timeout=PATIENCE_SECONDS)
                time.sleep(PACE_SECONDS)
                with self.news:
                    self.confirmed += 1
                    self.news.notify_all()

    def _take(self) -> None:
        self.reaches(1)
        with shmbroker.connect(f"shm://{self.vhost}") as broker:
            flow, paged = broker.queue("flow"), broker.queue("paged")
            while not self.is_over:
                for _ in flow.consume(timeout=0):
                    pass
                if self.confirmed * BATCH - self.taken > LEFT:
                    for _ in range(BATCH):
                        self.taken += bool(paged.receive(timeout=PATIENCE_SECONDS))

    def reaches(self, batches: int) -> int:
        with self.news:
            assert self.news.wait_for(lambda: self.confirmed >= batches, PATIENCE_SECONDS)
        return self.confirmed

    def __enter__(self) -> Load:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        for each in self._threads:
            each.join()


def numbers(vhost: str, queue: str) -> list[int]:
    """All that is there, in order, until nothing comes any more."""
    found: list[int] = []
    with shmbroker.connect(f"shm://{vhost}") as broker:
        taken, ends_at = broker.queue(queue), time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                found.append(int.from_bytes(taken.receive(timeout=1.0)[:4], "big"))
                ends_at = time.monotonic() + PATIENCE_SECONDS
            except Empty:
                if taken.statistics().depth == 0:
                    return found
                assert time.monotonic() < ends_at, "what is there does not come"


@contextmanager
def restored(run: Run, source: Path, *, new_node: bool = False) -> Iterator[str]:
    vhost = load(run.folder).vhost
    restore(load(run.folder), source, new_node=new_node)
    run.start().becomes("live")
    try:
        yield vhost
        assert run.stop() == 0
    finally:
        run.kill()
        vhosts.delete(vhost, force=True)


def taken(run: Run, target: Path, since: Path | None = None) -> Backup:
    return backup.take(load(run.folder), target, since, print)


def test_a_backup_under_load_has_all_that_was_confirmed_before_it_began(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    live = make("a").start().becomes("live")
    with Load(vhost) as load_:
        load_.reaches(2 * LEFT // BATCH)
        first = taken(live, tmp_path / "first")
        load_.reaches(load_.confirmed + 20)
        confirmed, acknowledged = load_.confirmed, load_.taken
        second = taken(live, tmp_path / "second", tmp_path / "first")
        load_.reaches(load_.confirmed + 5)
        taken_by_then = load_.taken
    live.kill()
    vhosts.delete(vhost, force=True)
    assert len(first.pages) > 0
    assert second.copied < second.bytes, "the segments that were there are shared"
    assert backup.verified(tmp_path / "second") == second
    other = Run(tmp_path / "b", f"{vhost}-b", "live", {"store.path": str(tmp_path / "other")})
    with restored(other, tmp_path / "second") as name:
        kept, paged = numbers(name, "kept"), numbers(name, "paged")
        assert kept == list(range(len(kept)))
        assert len(kept) >= confirmed
        assert paged == list(range(paged[0], paged[-1] + 1)), "each once, in order"
        assert paged[0] <= taken_by_then
        assert paged[-1] + 1 >= confirmed * BATCH
        assert acknowledged - BATCH <= paged[0] + SLOTS


SEGMENT: Final = 1 << 20


def recycled(run: Run, vhost: str, serial: int) -> None:
    """So much goes through a queue that this segment is written, and let go of."""
    journal = store.journal_of(load(run.folder))
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("flow", durable=True)
        while newest(run) <= serial or (journal / segment_name(serial)).exists():
            queue.publish(bytes(SEGMENT // 4), timeout=PATIENCE_SECONDS)
            queue.receive(timeout=PATIENCE_SECONDS)


def newest(run: Run) -> int:
    journal = store.journal_of(load(run.folder))
    return max(int(each.stem, 16) for each in journal.glob("*.journal"))


def test_a_backup_passes_over_segments_that_were_let_go_of(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    """A message that stays keeps the oldest segment; those behind it come and go."""
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    recycled(live, vhost, newest(live) + 1)
    first = taken(live, tmp_path / "first")
    recycled(live, vhost, newest(live))
    second = taken(live, tmp_path / "second", tmp_path / "first")
    put(vhost, b"2")
    third = taken(live, tmp_path / "third", tmp_path / "second")
    recycled(live, vhost, newest(live) + 1)
    fourth = taken(live, tmp_path / "fourth", tmp_path / "third")
    reading = backup.Reading(store.journal_of(load(live.folder)), tmp_path / "r", None, print)
    recycled(live, vhost, newest(live))  # as it has been listed
    reading.read_to_end()
    reading.close()
    assert live.stop() == 0
    for made, name in ((first, "first"), (second, "second"), (third, "third"), (fourth, "fourth")):
        assert backup.verified(tmp_path / name) == made
    for made in (second, third, fourth):
        assert made.bytes - made.copied > SEGMENT // 2, "the oldest segment is shared"
    assert backup.checked(tmp_path / "r"), "all that is needed is there"


def test_what_is_restored_is_the_same_node_in_another_history(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1", b"2")
    made = taken(live, tmp_path / "backup")
    put(vhost, b"3")
    with pytest.raises(InvalidArgument, match="is not empty"):
        restore(load(live.folder), tmp_path / "backup", new_node=False)
    live.kill()
    epoch = live.status.epoch
    names = []
    for name, new_node in (("b", False), ("c", False), ("d", True)):
        other = Run(tmp_path / name, f"{vhost}-{name}", "live",
                    {"store.path": str(tmp_path / f"store-{name}")})  # fmt: skip
        with restored(other, tmp_path / "backup", new_node=new_node) as there:
            assert bodies(there) == [b"1", b"2"]
            assert other.status.epoch > epoch + 1000
        node = store.read_node(tmp_path / f"store-{name}" / store.NODE)
        assert node is not None
        names.append((node.node, store.history_of(tmp_path / f"store-{name}")))
    assert [each == made.node for each, _ in names] == [True, True, False]
    assert len({history for _, history in names} | {0}) == 4
    assert store.history_of(tmp_path / "store") == 0


def test_a_store_that_is_restored_again_is_in_a_higher_epoch_again(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    live = make("a").start().becomes("live")
    taken(live, tmp_path / "backup")
    epochs = [live.status.epoch]
    assert live.stop() == 0
    for lost in ("lost", "lost again"):
        shutil.move(tmp_path / "store" / "journal", tmp_path / lost)
        with restored(live, tmp_path / "backup"):
            epochs.append(live.status.epoch)
    assert epochs == sorted(set(epochs))


def test_damage_of_a_backup_is_found(make: Make, vhost: str, tmp_path: Path) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1", b"2")
    folder = tmp_path / "backup"
    made = taken(live, folder)
    assert live.stop() == 0
    (segment,) = (folder / "journal").glob("*.journal")
    whole = segment.read_bytes()
    segment.write_bytes(whole[: made.end - 8] + bytes(8) + whole[made.end :])
    with pytest.raises(JournalDamaged):
        backup.verified(folder)
    other = Run(tmp_path / "b", vhost, "live", {"store.path": str(tmp_path / "other")})
    with pytest.raises(JournalDamaged):
        restore(load(other.folder), folder, new_node=False)
    assert not store.has_journal(tmp_path / "other" / "journal")
    segment.write_bytes(whole)
    assert backup.verified(folder) == made
    write_whole(folder / backup.FILE, {**asdict(made), "format": 2})
    with pytest.raises(InvalidArgument, match="use the version that made it"):
        backup.verified(folder)
    (folder / backup.FILE).unlink()
    with pytest.raises(NotFound, match="was not finished"):
        backup.verified(folder)
    write_whole(folder / backup.FILE, asdict(replace(made, pages={"a/b.page": [1, "x"]})))
    with pytest.raises(JournalDamaged, match="is missing"):
        backup.verified(folder)
    write_whole(folder / backup.FILE, asdict(made))
    (folder / "pages" / "a").mkdir(parents=True)
    (folder / "pages" / "a" / "b.page").touch()
    with pytest.raises(JournalDamaged, match="is not of this backup"):
        backup.verified(folder)


@pytest.mark.parametrize(
    "change",
    [{"end": "1"}, {"pages": []}, {"pages": {"a/b.page": 5}}, {"pages": {"../b.page": [1, "x"]}},
     {"more": 1}, {"vhost": None}, {"segments": True}],
)  # fmt: skip
def test_a_backup_says_what_is_in_it_or_is_damaged(
    change: dict[str, object], tmp_path: Path
) -> None:
    write_whole(tmp_path / backup.FILE, asdict(backup.NOTHING) | change)
    with pytest.raises(JournalDamaged, match=r"backup\.json is damaged"):
        backup.verified(tmp_path)
    (tmp_path / backup.FILE).write_text("{")
    with pytest.raises(JournalDamaged, match=r"backup\.json is damaged"):
        backup.verified(tmp_path)


def test_a_backup_is_made_in_a_folder_of_its_own(make: Make, vhost: str, tmp_path: Path) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    data = store.journal_of(load(live.folder)).parent
    for target in (data / "backup", data / "journal", data / "pages" / "x" / "y"):
        with pytest.raises(InvalidArgument, match="is in the store itself"):
            taken(live, target)
        assert not (target / backup.FILE).exists()
    made = taken(live, tmp_path / "backup")
    damaged = tmp_path / "damaged"
    shutil.copytree(tmp_path / "backup", damaged)
    with next((damaged / "journal").iterdir()).open("rb+") as segment:
        segment.seek(made.end - 8)
        segment.write(b"01234567")
    for since in (damaged, tmp_path / "nowhere"):
        with pytest.raises((JournalDamaged, NotFound), match=str(since)):
            taken(live, tmp_path / "next", since)
        assert not (tmp_path / "next").exists()
    (damaged / backup.FILE).unlink()
    with pytest.raises(InvalidArgument, match="was not finished"):
        taken(live, damaged)
    assert live.stop() == 0


def test_half_of_a_backup_is_not_started_and_is_restored_anew(
    make: Make, vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1", b"2")
    source = tmp_path / "backup"
    taken(live, source)
    assert live.stop() == 0
    other = Run(tmp_path / "b", f"{vhost}-b", "live", {"store.path": str(tmp_path / "other")})

    def killed(made: Path, place: Path) -> None:
        if place.name == store.JOURNAL:
            os._exit(1)
        put_in_place(made, place)

    put_in_place = restoration.put
    monkeypatch.setattr(restoration, "put", killed)
    child = Process(target=restore, args=(load(other.folder), source), kwargs={"new_node": False})
    child.start()
    child.join()
    monkeypatch.undo()
    page = tmp_path / "other" / "pages" / "a" / "b.page"
    page.parent.mkdir()
    page.touch()
    other.start()
    assert other.ends() == 1
    assert "shmbroker store restore BACKUP" in other.errors()
    with restored(other, source) as name:
        assert bodies(name) == [b"1", b"2"]
    assert not page.exists()


def test_a_disk_without_room_for_what_is_restored_is_as_before(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    live = make("a").start().becomes("live")
    put(vhost, bytes(500_000), bytes(500_000))
    taken(live, tmp_path / "backup")
    assert live.stop() == 0
    with small_disk(tmp_path / "disk", 400_000) as disk:
        other = Run(tmp_path / "b", f"{vhost}-b", "live", {"store.path": str(disk / "store")})
        with pytest.raises(DiskFull, match="nothing is left"):
            restore(load(other.folder), tmp_path / "backup", new_node=False)
        assert not list(disk.rglob("*.journal"))
        other.start().becomes("live")
        assert other.stop() == 0
        vhosts.delete(f"{vhost}-b", force=True)


def test_a_disk_without_room_for_the_backup_is_said_and_nothing_stays(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    """Also if it is the last frame of which the disk takes a part."""
    live = make("a").start().becomes("live")
    with small_disk(tmp_path / "disk", 400_000) as disk:
        for _ in range(2):
            put(vhost, b"x" * 500_000)  # of zeros a part and a hole would be all of it
            with pytest.raises(DiskFull, match="nothing is left"):
                taken(live, disk / "backup")
            assert not (disk / "backup").exists()
    put(vhost, b"3")
    assert live.stop() == 0
