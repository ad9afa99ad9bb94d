"""What a member had is not erased before its new copy is whole, and half a copy is not kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shmbroker.ipc.journal import divergence, records
from shmbroker.ipc.journal.history import History
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.netbridge.replica.aside import (
    HALF,
    JOURNAL,
    begin_copy,
    end_copy,
    keep_newest,
    saved,
    set_aside,
)
from shmbroker.netbridge.replicated.diverged import counted

QUEUE = 3
SEGMENT_BYTES = 64 << 10
MANY = 100
"""Messages of half a segment: more than a read returns."""


def filled(folder: Path, bodies: list[bytes], first: int = 0, retired: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    with Journal(folder, segment_bytes=SEGMENT_BYTES) as journal:
        journal.stage(records.QUEUE, QUEUE, 0, b"orders")
        journal.commit()
        for position, body in enumerate(bodies, first):
            journal.message(QUEUE, position, body)
            journal.commit()
        if retired:
            journal.stage(records.RETIRED, QUEUE, retired)
            journal.commit()
    return folder


def names(store: Path) -> list[str]:
    return [path.name for _, path in saved(store)]


@pytest.mark.parametrize(("most", "kept"), [(0, []), (1, ["oldreplica.3"]), (-1, None)])
def test_nothing_goes_before_the_copy_is_whole(
    tmp_path: Path, most: int, kept: list[str] | None
) -> None:
    everything = [f"oldreplica.{number}" for number in (1, 2, 3)]
    for _ in everything:
        filled(tmp_path / JOURNAL, [b"x"])
        assert set_aside(tmp_path) is not None
    assert names(tmp_path) == everything
    keep_newest(tmp_path, most)
    assert names(tmp_path) == (everything if kept is None else kept)


def test_half_a_copy_is_discarded_and_a_whole_one_is_not(tmp_path: Path) -> None:
    begin_copy(tmp_path)
    filled(tmp_path / JOURNAL, [b"half"])
    assert set_aside(tmp_path) is None
    assert not (tmp_path / JOURNAL).exists()
    begin_copy(tmp_path)
    filled(tmp_path / JOURNAL, [b"whole"])
    end_copy(tmp_path)
    assert set_aside(tmp_path) == tmp_path / "oldreplica.1"


def test_half_a_copy_that_is_half_discarded_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be one of those that are kept, in the place of what nobody else has."""

    class Killed(BaseException): ...

    def begins(folder: Path) -> None:
        (folder / HALF).unlink()
        raise Killed

    begin_copy(tmp_path)
    filled(tmp_path / JOURNAL, [b"half"])
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr("shutil.rmtree", begins)
        set_aside(tmp_path)
    assert set_aside(tmp_path) is None
    assert names(tmp_path) == []


def test_without_a_common_frame_all_that_is_left_counts_unless_the_other_has_it(
    tmp_path: Path,
) -> None:
    old = filled(tmp_path / "old", [b"done", b"there", b"alone", b"other"], retired=1)
    new = filled(tmp_path / "new", [b"there", b"body"], first=1)
    found = divergence.tail(old, new)
    assert (found.after, found.is_exact) == (0, False)
    assert found.ranges == [(records.MESSAGE, QUEUE, 2, 3)]
    told = list(divergence.within(old, found.ranges))
    assert [each.body for each in told] == [b"orders", b"alone", b"other"]
    assert divergence.unretired(old).ranges == [(records.MESSAGE, QUEUE, 1, 3)]


def test_what_was_acknowledged_in_the_tail_does_not_count(tmp_path: Path) -> None:
    old = filled(tmp_path / "old", [b"0", b"1", b"2"], retired=2)
    assert divergence.tail(old, filled(tmp_path / "new", [])).ranges == [
        (records.MESSAGE, QUEUE, 2, 2)
    ]


@contextmanager
def goes_on(folder: Path) -> Iterator[Journal]:
    with Journal(folder, epoch=None, segment_bytes=SEGMENT_BYTES) as journal:
        with Replay(folder) as replay:
            for _ in replay:
                pass
            journal.begin(1, replay)
        yield journal


@pytest.mark.parametrize(("read", "is_exact"), [(1, False), (2, True), (4, False), (5, False)])
def test_segments_may_go_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int, is_exact: bool
) -> None:
    """The new one is read twice, and written meanwhile: by a member whose queues are consumed."""
    old = filled(tmp_path / "old", [b"both"])
    new = Path(shutil.copytree(old, tmp_path / "new"))
    with goes_on(old) as journal:
        journal.message(QUEUE, 1, b"alone")
        journal.commit()
    with goes_on(new) as journal:
        for position in range(1, MANY):
            journal.message(QUEUE, position, bytes(SEGMENT_BYTES // 2))
            journal.commit()
        reads, real = [0], History.read

        def consumed(history: History) -> memoryview:
            reads[0] += history._path == new
            if history._path == new and reads[0] == read:
                journal.stage(records.RETIRED, QUEUE, MANY - 1)
                journal.retire(QUEUE, MANY - 1)
                journal.commit()
                assert journal.clear() > MANY // 2
                journal.wait()
            return real(history)

        monkeypatch.setattr(History, "read", consumed)
        found = divergence.tail(old, new)
    assert reads[0] > read
    assert found.is_exact == is_exact
    assert found.ranges == [(records.MESSAGE, QUEUE, int(read > 1), 1)]


def test_of_one_that_lacks_a_segment_the_others_count(tmp_path: Path) -> None:
    filled(tmp_path / JOURNAL, [bytes(SEGMENT_BYTES // 2)] * 8)
    assert set_aside(tmp_path) is not None
    sorted((tmp_path / "oldreplica.1").glob("*.journal"))[2].unlink()
    filled(tmp_path / JOURNAL, [b"ours"])
    (told,) = counted(tmp_path, 2)
    assert told.messages in (6, 7)
    assert not told.is_exact


def test_one_that_cannot_be_opened_keeps_no_other_from_being_counted(tmp_path: Path) -> None:
    for number in range(3):
        filled(tmp_path / JOURNAL, [b"%d" % number])
        assert set_aside(tmp_path) is not None
    [segment] = (tmp_path / "oldreplica.1").glob("*.journal")
    os.truncate(segment, 100)
    filled(tmp_path / JOURNAL, [b"ours"])
    assert [each.number for each in counted(tmp_path, 2)] == [1, 2, 3]
    assert names(tmp_path) == ["oldreplica.2", "oldreplica.3"]
