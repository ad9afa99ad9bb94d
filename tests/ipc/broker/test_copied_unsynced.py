"""A copy is ahead of its disk: what a power failure may leave of it, and what is damage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, JournalDamaged
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.history import History, last_places
from shmbroker.ipc.journal.replay import Record, Replay, segment_name
from tests.ipc.broker.test_copied import Copy, publish
from tests.support.host import PATIENCE

BEHIND_MAX = 127
HEAD = 32


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def original(vhost: str, tmp_path: Path, opened: ExitStack) -> Broker:
    (tmp_path / "original").mkdir()
    broker = opened.enter_context(shmbroker.connect(f"shm://{vhost}"))
    broker.declare_queue("orders", durable=True, slots=4096)
    journaler = opened.enter_context(Journaler(tmp_path / "original"))
    journaler.start(broker, 1)
    return broker


class Following:
    """A copy, and the files that it is fed from."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self.copy = Copy(folder / "copy", opened, 1 << 20)
        self._history = opened.enter_context(History(folder / "original"))
        self._pictures = 0

    def go_on(self) -> None:
        while shipped := self._history.read():
            self.copy.applier.frames(shipped)

    def picture(self) -> Path:
        """What would be there after a power failure, if all had got to the disk."""
        self._pictures += 1
        to = self.folder / f"picture-{self._pictures}"
        to.mkdir()
        for each in (self.folder / "copy").glob("*.journal"):
            shutil.copy(each, to)
        return to


def messages(folder: Path, noted: list[str]) -> list[Record]:
    with Replay(folder, noted=noted.append) as replay:
        return [each for each in replay if each.kind == records.MESSAGE]


def damage(folder: Path, record: Record) -> None:
    with (folder / segment_name(record.serial)).open("r+b") as file:
        file.seek(record.offset + HEAD)
        file.write(b"damage")


def one_frame_each(broker: Broker, count: int) -> None:
    for _ in range(count):
        publish(broker, 0, 1)


def test_what_was_not_synced_may_be_torn(
    original: Broker, tmp_path: Path, opened: ExitStack
) -> None:
    """Frames that are whole behind the torn one do not make it damage, and do not count."""
    following = Following(tmp_path, opened)
    one_frame_each(original, 20)
    following.go_on()
    torn, noted = following.picture(), list[str]()
    there = messages(torn, noted)
    assert (len(there), noted) == (20, [])
    damage(torn, there[10])
    assert len(messages(torn, noted)) == 10
    assert len(noted) == 1
    assert "half written" in noted[0]
    _, repeated = last_places(following.picture())
    assert repeated == following.copy.applier.place()


def test_what_was_synced_is_damage(original: Broker, tmp_path: Path, opened: ExitStack) -> None:
    """The first frame behind the sync says so, as soon as it is there."""
    following = Following(tmp_path, opened)
    applier = following.copy.applier
    one_frame_each(original, 20)
    following.go_on()
    assert applier.synced == 0
    applier.sync()
    assert applier.synced == applier.written > 0
    told, noted = following.picture(), list[str]()
    one_frame_each(original, 1)
    following.go_on()
    later = following.picture()
    for each in (told, later):
        damage(each, messages(each, noted)[10])
    assert len(messages(told, noted)) == 10, "nothing says that it was synced"
    with pytest.raises(JournalDamaged, match="it was synced"):
        messages(later, noted)
    assert applier.synced < applier.written


def test_it_is_not_ahead_without_an_end(
    original: Broker, tmp_path: Path, opened: ExitStack
) -> None:
    following = Following(tmp_path, opened)
    one_frame_each(original, 2 * BEHIND_MAX)
    following.go_on()
    folder, noted = following.picture(), list[str]()
    there = messages(folder, noted)
    damage(folder, there[len(there) - BEHIND_MAX - 2])
    with pytest.raises(JournalDamaged, match="it was synced"):
        messages(folder, noted)


def test_who_begins_again_has_all_of_it(
    original: Broker, tmp_path: Path, opened: ExitStack
) -> None:
    """A copy that ends syncs what it has; one that is killed has it in its files all the same."""
    following = Following(tmp_path, opened)
    one_frame_each(original, 20)
    following.go_on()
    bodies = [each.body for each in original.queue("orders").browse()]
    again = Copy(following.picture(), opened, 1 << 20)
    assert again.applier.place() == following.copy.applier.place()
    assert again.bodies() == bodies
    original.queue("orders").confirm(timeout=PATIENCE)
