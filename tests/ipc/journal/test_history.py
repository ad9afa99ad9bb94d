"""A journal's frames out of its files: segments that follow, that went, and large frames."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker import MessageGone, SystemRefused
from shmbroker.ipc.journal.history import History, last_places
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.shipping import ROOM, SHIPPED, shipped
from shmbroker.ipc.journal.stored import stored

SEGMENT = 64 << 10
BODY = 4000


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path, epoch=7, segment_bytes=SEGMENT) as journal:
        yield journal


def write(journal: Journal, first: int, end: int, *, size: int = BODY) -> None:
    """A frame each."""
    for position in range(first, end):
        journal.message(1, position, struct.pack("=q", position) + bytes(size))
        journal.commit()


def positions(memory: memoryview) -> list[int]:
    frames = [frame for _, frame in shipped(memory)]
    messages = (each for frame in frames for each in stored(frame) if each.queue == 1)
    return [each.position for each in messages]


def test_each_frame_says_which_one_is_before_it(journal: Journal, tmp_path: Path) -> None:
    write(journal, 0, 40)
    with History(tmp_path) as history:
        memory = bytes(history.read())
        assert positions(memoryview(memory)) == list(range(40))
        at, before, segments = 0, 0, set()
        while at < len(memory):
            number, after, epoch, _, _, size = SHIPPED.unpack_from(memory, at)
            assert (after, epoch) == (before, 7)
            at, before = at + SHIPPED.size + size, number
            segments.add(number >> 32)
        assert len(segments) > 2
        place = history.place
        assert place is not None
        assert place.number == before
        assert not history.read()
        write(journal, 40, 60)
        assert positions(history.read()) == list(range(40, 60))
        assert history.seek(place)
        assert positions(history.read()) == list(range(40, 60))
        last = history.place
    assert last_places(tmp_path) == (last, None)


def test_a_frame_that_has_no_room_is_read_alone(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=16 << 20) as journal, History(tmp_path) as history:
        write(journal, 0, 2)
        write(journal, 2, 3, size=2 * ROOM)
        write(journal, 3, 4)
        assert [positions(history.read()) for _ in range(4)] == [[0, 1], [2], [3], []]


def test_a_segment_that_was_let_go_of_is_missed(journal: Journal, tmp_path: Path) -> None:
    write(journal, 0, 5)
    with History(tmp_path) as history, History(tmp_path) as former:
        assert positions(history.read()) == [0, 1, 2, 3, 4]
        place = history.place
        assert place is not None
        assert positions(former.read()) == [0, 1, 2, 3, 4]
        write(journal, 5, 60)
        segments = sorted(tmp_path.glob("*.journal"))
        segments[1].rename(tmp_path / "away")
        assert history.seek(place), "it is in the first one"
        with pytest.raises(MessageGone, match=f"segment {segments[1].stem} was let go of"):
            while history.read():
                pass
        segments[0].rename(tmp_path / "too")
        with pytest.raises(MessageGone, match=f"segment {segments[0].stem} was let go of"):
            while former.read():
                pass
        assert not history.seek(place)
        history.resume(place)
        left = positions(history.read())
        assert left == list(range(left[0], 60)), "what is behind it"
        assert left[0] > 10


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SystemRefused, match="No such file"):
        History(tmp_path / "nowhere")
