"""Page files without a queue: put, read, damaged; also records that are longer than one read."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.core.layout import RECORD_IS_MESSAGE, RECORD_KIND_SHIFT
from shmbroker.ipc.base.room import Room
from shmbroker.ipc.journal.stored import HEAD
from shmbroker.ipc.paging.page_file import HEADER_BYTES
from shmbroker.ipc.paging.page_reader import READ_BYTES, Safety
from shmbroker.ipc.paging.page_store import PageStore

PAGE_BYTES = 4 << 20
LONG = READ_BYTES + 1000  # of a body: of no unit, and more than is read at once


class Files:
    def __init__(self, folder: Path, *, is_durable: bool = False) -> None:
        self.folder = folder
        self.is_durable = is_durable
        self.said: list[str] = []
        self.open()

    def open(self) -> None:
        safety = Safety(0, 1 << 40) if self.is_durable else None
        self.store = PageStore(self.folder, PAGE_BYTES, 1, safety, self.said.append)

    def again(self) -> None:
        self.store.close()
        self.open()

    def put(self, first: int, end: int, length: int = 40) -> None:
        one = HEAD.size + (length + 7 & -8)
        room = Room(one * (end - first))
        for number in range(first, end):
            where = number | RECORD_IS_MESSAGE << RECORD_KIND_SHIFT
            record = HEAD.pack(0, 0, length, 0, 0, where) + bytes([number & 255]) * length
            at = one * (number - first)
            room.view[at : at + len(record)] = record
        self.store.writer.write(room, 0, room.size)

    def read(self) -> list[int]:
        reader, found = self.store.reader, []
        while reader.look():
            head, length = reader.head()
            found.append(head.position)
            reader.pass_to(reader.addresses()[0] + length)
        return found

    def change(self, offset: int) -> None:
        (path,) = self.folder.glob("*.page")
        data = bytearray(path.read_bytes())
        data[offset] ^= 1
        path.write_bytes(data)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "pages")


@pytest.mark.parametrize("length", [0, 1, 40, LONG])
def test_what_was_put_is_read_in_order(files: Files, length: int) -> None:
    files.put(0, 5, length)
    assert files.read() == [0, 1, 2, 3, 4]
    assert files.store.is_empty
    assert files.store.size == 0
    files.put(5, 8, length)
    files.put(8, 9, length)
    files.again()
    assert files.store.size == 4 * (HEAD.size + (length + 7 & -8))
    assert files.read() == [5, 6, 7, 8]
    assert not files.said
    assert not list(files.folder.iterdir())


def test_a_file_is_read_while_it_is_written_and_after_it(files: Files) -> None:
    files.put(0, 2, LONG)
    reader = files.store.reader
    assert reader.look()
    for first in range(2, 30, 4):  # a write that fills a file is the last there
        files.put(first, first + 4, LONG)
    assert len(list(files.folder.iterdir())) > 1
    assert files.read() == list(range(30))


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize(("at", "what"), [(4, "head"), (HEAD.size + LONG // 2, "body")])
def test_damage_costs_one_record(tmp_path: Path, is_durable: bool, at: int, what: str) -> None:
    files = Files(tmp_path / "pages", is_durable=is_durable)
    files.put(0, 6, LONG)
    whole = HEAD.size + (LONG + 7 & -8)
    files.change(HEADER_BYTES + 2 * whole + at)
    files.again()
    assert files.read() == [0, 1, 3, 4, 5]
    offset = HEADER_BYTES + 2 * whole
    assert [each.split(", ")[1] for each in files.said] == [
        f"offset {offset}: the {what} of a record does not check"
    ]
    files.store.reader.journaled(None)
    assert [each.suffix for each in files.folder.iterdir()] == [".damaged"]


def test_behind_the_last_head_that_is_damaged_there_is_nothing(files: Files) -> None:
    files.put(0, 3, LONG)
    files.change(HEADER_BYTES + 2 * (HEAD.size + (LONG + 7 & -8)))
    files.again()
    assert files.read() == [0, 1]
    assert files.store.size == 0


def test_all_is_dropped_and_of_a_durable_queue_that_is_written_down(tmp_path: Path) -> None:
    files = Files(tmp_path / "pages", is_durable=True)
    files.put(0, 100)
    files.store.clear(100)
    assert len(list(files.folder.iterdir())) == 1
    files.again()
    reader = files.store.reader
    assert reader.look()
    head, _ = reader.head()
    assert (head.is_message, head.position) == (False, 100)
