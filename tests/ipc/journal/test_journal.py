"""The journal's file layer, on a disk that is well."""

from __future__ import annotations

import json
import signal
from dataclasses import astuple
from pathlib import Path

import pytest

from shmbroker.ipc.base.errors import InvalidArgument, JournalFailed
from shmbroker.ipc.journal import divergence, records
from shmbroker.ipc.journal.divergence import PLACE
from shmbroker.ipc.journal.export import Needed, compacted, exported, imported, verified
from shmbroker.ipc.journal.history import last_places
from shmbroker.ipc.journal.journal import ALL_POSITIONS, Journal
from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.journal.replay import Record, Replay, frame_text
from shmbroker.ipc.journal.segment import newest_of

SEGMENT_BYTES = 32 << 10
PAGE = 4096


def read(folder: Path) -> list[Record]:
    notes: list[str] = []
    with Replay(folder, noted=notes.append) as replay:
        found = list(replay)
    assert notes == []
    return [record for record in found if record.kind != records.SEGMENTS]


def positions(folder: Path, queue: int = 1) -> list[int]:
    return [r.position for r in read(folder) if (r.kind, r.queue) == (records.MESSAGE, queue)]


def fill(journal: Journal, count: int, queue: int = 1, first: int = 0, size: int = 1000) -> None:
    for position in range(first, first + count):
        journal.message(queue, position, bytes(size))
        journal.commit()


def test_what_is_committed_is_read(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES) as journal:
        journal.stage(records.QUEUE, -5, 0, b"declared")
        journal.message(-5, ALL_POSITIONS - 1, b"")
        journal.commit()
        journal.stage(255, 1 << 62, 3, b"x" * 9)
        journal.commit()
        journal.commit()
        journal.message(1, 1, b"never committed")
    found = [(r.kind, r.queue, r.position, r.body, r.frame, r.last) for r in read(tmp_path)]
    assert found == [
        (records.QUEUE, -5, 0, b"declared", 1 << 32 | 1, False),
        (records.MESSAGE, -5, ALL_POSITIONS - 1, b"", 1 << 32 | 1, True),
        (255, 1 << 62, 3, b"x" * 9, 1 << 32 | 2, True),
    ]


def test_a_frame_has_one_number_through_all_segments(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES) as journal:
        written = []
        for position in range(100):
            fill(journal, 1, first=position)
            written.append(journal.statistics().frame)
    with Replay(tmp_path) as replay:
        found = [r.frame for r in replay if r.kind == records.MESSAGE]
        assert replay.report().frame == written[-1]
    assert found == written == sorted(set(written))
    assert {f"{r.serial:x}" for r in read(tmp_path)} == {
        frame_text(each).partition(":")[0] for each in written
    }
    lines = [json.loads(line) for line in exported(tmp_path, print)]
    assert [line["frame"] for line in lines] == list(map(frame_text, written))


def test_a_message_may_be_larger_than_a_segment(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES) as journal:
        fill(journal, 3)
        journal.message(1, 3, bytes(range(256)) * 1000)
        journal.commit()
        fill(journal, 3, first=4)
        journal.wait()
        journal.retire(1, 7)
        fill(journal, 40, first=7)
        journal.clear()
        journal.wait()
        assert journal.statistics().deleted == 1, "it is too large to be used again"
    assert positions(tmp_path)[-40:] == list(range(7, 47))


@pytest.mark.parametrize(
    ("kind", "position"), [(0, 0), (256, 0), (-1, 0), (1, -1), (1, ALL_POSITIONS)]
)
def test_what_cannot_be_staged(tmp_path: Path, kind: int, position: int) -> None:
    journal = Journal(tmp_path, segment_bytes=SEGMENT_BYTES)
    with pytest.raises(InvalidArgument):
        journal.stage(kind, 1, position)
    journal.close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="not-there: No such file or directory"):
        Journal(tmp_path / "not-there")
    with pytest.raises(Exception, match="not-there: No such file or directory"):
        Replay(tmp_path / "not-there")
    with pytest.raises(InvalidArgument, match="multiple of 4096"):
        Journal(tmp_path, segment_bytes=5000)
    assert read(tmp_path) == []


def test_each_segment_begins_with_a_snapshot(tmp_path: Path) -> None:
    def snapshot(journal: Journal) -> None:
        journal.stage(records.QUEUE, 1, 0, b"declared")

    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES, snapshot=snapshot) as journal:
        fill(journal, 100)
    serials = {record.serial for record in read(tmp_path)}
    assert len(serials) > 3
    assert {r.serial for r in read(tmp_path) if r.kind == records.QUEUE} == serials


def test_a_snapshot_that_fails_keeps_what_is_staged(tmp_path: Path) -> None:
    errors = [ZeroDivisionError("once")]

    def snapshot(journal: Journal) -> None:
        if errors:
            raise errors.pop()

    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES, snapshot=snapshot) as journal:
        journal.message(1, 0, b"x")
        with pytest.raises(ZeroDivisionError):
            journal.commit()
        assert positions(tmp_path) == []
        journal.commit()
    assert positions(tmp_path) == [0]


def test_a_segment_without_needed_messages_is_used_again(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES) as journal:
        for round in range(10):
            fill(journal, 50, first=50 * round)
            journal.retire(1, 50 * (round + 1))
            journal.clear()
            journal.wait()
        told = journal.statistics()
    assert told.recycled >= 8
    assert told.segments <= 2
    assert len(list(tmp_path.glob("*.journal"))) <= told.segments


def test_one_message_keeps_its_segment_until_it_is_compacted(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES) as journal:
        fill(journal, 1, queue=2)
        fill(journal, 100)
        journal.retire(1)
        journal.clear()
        assert positions(tmp_path, queue=2) == [0]
        before = journal.statistics().segments
        while journal.compact(50):
            journal.commit()
        assert journal.clear() == 1
        assert journal.statistics().segments == before - 1
    assert positions(tmp_path, queue=2) == [0]


def test_beginning_does_not_read_what_is_there(tmp_path: Path) -> None:
    with Journal(tmp_path, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        fill(journal, 200)
        segments = journal.statistics().segments
    with Journal(tmp_path, epoch=2, segment_bytes=SEGMENT_BYTES) as journal:
        assert journal.statistics().segments == segments + 1
        journal.wait()
        assert journal.statistics().unknown == 0
        journal.retire(1, 200)
        journal.commit()
        assert journal.statistics().segments == 1
    assert positions(tmp_path) == []


def test_a_replay_is_adopted(tmp_path: Path) -> None:
    with Journal(tmp_path, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        fill(journal, 200)
        segments = journal.statistics().segments
    with Replay(tmp_path) as replay, Journal(tmp_path, epoch=None) as journal:
        with pytest.raises(InvalidArgument, match="read to its end"):
            journal.begin(2, replay)
        assert len(list(replay)) > 200
        journal.begin(2, replay)
        assert journal.statistics().unknown == 0
        journal.retire(1, 190)
        journal.commit()
        assert journal.statistics().segments < segments / 2


@pytest.mark.parametrize("segment_bytes", [SEGMENT_BYTES, 2 * SEGMENT_BYTES])
def test_what_is_left_is_used_if_it_fits(tmp_path: Path, segment_bytes: int) -> None:
    with Journal(tmp_path, epoch=1, segment_bytes=SEGMENT_BYTES) as journal:
        fill(journal, 1)
        journal.wait()
        journal.leave()
    (left,) = tmp_path.glob("*.spare")
    was = left.stat().st_ino
    with Journal(tmp_path, epoch=2, segment_bytes=segment_bytes) as journal:
        fill(journal, 1, first=1)
        journal.wait()
        assert not left.exists()
        there = [each.stat().st_ino for each in tmp_path.glob("*.journal")]
        assert (was in there) is (segment_bytes == SEGMENT_BYTES)
    assert positions(tmp_path) == [0, 1]
    assert not list(tmp_path.glob("*.spare")), "who ends for good leaves nothing"


def test_only_what_was_begun_can_be_written(tmp_path: Path) -> None:
    with Journal(tmp_path, epoch=None, segment_bytes=SEGMENT_BYTES) as journal:
        with pytest.raises(InvalidArgument, match="has not begun"):
            journal.message(1, 0, b"")
        journal.wait()
        (spare,) = tmp_path.iterdir()
        with Journal(tmp_path, epoch=1, segment_bytes=SEGMENT_BYTES) as other:
            fill(other, 1)
            assert spare.exists(), "a backup's is left to it"
        journal.begin(2)
        fill(journal, 1, first=1)
        with pytest.raises(InvalidArgument, match="has begun already"):
            journal.begin(3)
    assert positions(tmp_path) == [0, 1]
    with pytest.raises(JournalFailed, match="epoch 2"):
        Journal(tmp_path, epoch=1)


@pytest.mark.parametrize("at", ["what is needed", "the snapshot"])
def test_ctrl_c_while_it_is_compacted_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """It comes in the middle of what C calls, where an exception cannot pass."""

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    def declared(journal: Journal) -> None:
        journal.stage(records.QUEUE, 1, 0, b"declared")

    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES, snapshot=declared) as journal:
        fill(journal, 100)
        journal.stage(records.RETIRED, 1, 90)
        journal.commit()
    with monkeypatch.context() as changed, pytest.raises(KeyboardInterrupt):
        if at == "the snapshot":
            changed.setattr(Journal, "_stage_snapshot", interrupted)
        else:
            changed.setattr(Needed, "__call__", interrupted)
        compacted(tmp_path, print, SEGMENT_BYTES)
    for _ in range(2):
        assert positions(tmp_path)[-10:] == [*range(90, 100)]
        assert b"declared" in {r.body for r in read(tmp_path) if r.kind == records.QUEUE}
        compacted(tmp_path, print, SEGMENT_BYTES)


def test_export_and_import(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with Journal(here, segment_bytes=SEGMENT_BYTES) as journal:
        journal.stage(records.QUEUE, 1, 0, b"\xff")
        fill(journal, 100)
        journal.message(1, 100, b"a")
        journal.message(1, 101, b"b")
        journal.commit()
    lines = list(exported(here, print))
    assert imported(there, lines, SEGMENT_BYTES) == 103
    assert {r.body for r in read(there) if r.kind == records.QUEUE} == {b"\xff"}
    messages = [
        [(r.position, r.body, r.last) for r in read(folder) if r.kind == records.MESSAGE]
        for folder in (here, there)
    ]
    assert messages[0] == messages[1]
    with pytest.raises(InvalidArgument, match="empty folder"):
        imported(there, lines)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x", "line 1: expected a JSON object"),
        ("[]", "line 1: expected a JSON object"),
        ("[" * 100_000, "line 1: expected a JSON object"),
        (f'{{"kind": 1, "queue": {1 << 63}, "position": 1}}', "queue to be a number of 64 bits"),
        (f'{{"kind": {1 << 80}, "queue": 1, "position": 1}}', "kind to be a number of 64 bits"),
        ('{"kind": "egg", "queue": 1, "position": 1}', "'egg' is none of"),
        ('{"kind": 1, "queue": "1", "position": 1}', "expected queue to be a number"),
        ('{"kind": 1, "queue": 1, "position": 1, "body": "?"}', "base64"),
        ('{"kind": 1, "queue": 1, "position": -1}', "line 1: .*position from 0"),
    ],
)
def test_a_line_that_is_no_record(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(InvalidArgument, match=expected):
        imported(tmp_path, [line], SEGMENT_BYTES)


def test_a_journal_is_compacted_at_rest(tmp_path: Path) -> None:
    with Journal(tmp_path, epoch=3, segment_bytes=SEGMENT_BYTES) as journal:
        journal.stage(records.QUEUE, 1, 0, b"declared")
        fill(journal, 100)
        fill(journal, 100, queue=2)
        fill(journal, 30, queue=3)
        journal.stage(records.QUEUE_GONE, 2, 0)
        journal.stage(records.RETIRED, 1, 90, bytes([0b10]))
        journal.commit()
    before, after = compacted(tmp_path, print, SEGMENT_BYTES)
    assert after < before / 2
    assert positions(tmp_path) == [90, *range(92, 100)]
    assert positions(tmp_path, queue=2) == []
    assert positions(tmp_path, queue=3) == list(range(30))
    assert verified(tmp_path, print).messages == 39


PLACES = [Place(3 << 32 | 17, 2, 5, 7), Place(9 << 32 | 4, 3, 8, 1)]
"""How the author of a frame has named it, and how the live that was followed has."""


@pytest.mark.parametrize("repeats", [PLACES, PLACES[1:], []])
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_what_is_compacted_repeats_the_frame_that_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeats: list[Place], is_interrupted: bool
) -> None:
    """And it is of the same node: so a member goes on where it was."""
    node = b"a journal's node"
    with Journal(tmp_path, epoch=3, segment_bytes=SEGMENT_BYTES, node=node) as journal:
        for position in range(100):
            journal.message(1, position, bytes(500))
            last = position == 99
            for place in repeats if last else [Place(2 << 32 | 1 + position, 2, 5, 6)]:
                journal.stage(records.COPIED, 0, 0, PLACE.pack(*astuple(place)))
            journal.commit()
    if is_interrupted:
        with monkeypatch.context() as changed, pytest.raises(KeyboardInterrupt):
            changed.setattr(Needed, "__call__", lambda *_: signal.raise_signal(signal.SIGINT))
            compacted(tmp_path, print, SEGMENT_BYTES)
    else:
        compacted(tmp_path, print, SEGMENT_BYTES)
    assert positions(tmp_path) == list(range(100))
    assert newest_of(tmp_path)[1] == node
    assert last_places(tmp_path)[1] == (repeats[-1] if repeats else None)
    *_, frame = divergence.frames(tmp_path, [])
    assert frame.original == (repeats[0] if repeats else frame.place)


def test_verify_tells_of_damage(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=SEGMENT_BYTES) as journal:
        fill(journal, 100)
    assert verified(tmp_path, print).damages == 0
    first = min(tmp_path.iterdir())
    data = bytearray(first.read_bytes())
    data[9000] ^= 4
    first.write_bytes(data)
    notes: list[str] = []
    assert verified(tmp_path, notes.append).damages == 1
    assert f"{first}, offset " in notes[0]


def torn(folder: Path) -> Path:
    """Two messages are confirmed.  The power has failed while a frame that moves one of them from
    queue 1 to 2 was written: its second page is not on the disk."""
    with Journal(folder, segment_bytes=SEGMENT_BYTES) as journal:
        for queue, body in ((3, b"tea"), (1, b"coffee")):
            journal.message(queue, 0, body)
            journal.commit()
        journal.message(2, 0, b"x" * 9000)
        journal.stage(records.RETIRED, 1, 1)
        journal.commit()
        file = folder / read(folder)[0].segment
    (folder / "reached").unlink(missing_ok=True)
    data = bytearray(file.read_bytes())
    page = (data.index(b"x" * 100) // PAGE + 1) * PAGE
    data[page : page + PAGE] = bytes(PAGE)
    file.write_bytes(data)
    return file


def test_a_frame_that_a_crash_has_torn_is_neither_damage_nor_exported(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    torn(tmp_path)
    notes: list[str] = []
    report = verified(tmp_path, notes.append)
    assert (report.damages, report.torn, len(notes)) == (0, 1, 1)
    imported(there, exported(tmp_path, notes.append), SEGMENT_BYTES)
    assert [(r.queue, r.body) for r in read(there)] == [(3, b"tea"), (1, b"coffee")]


def test_a_torn_frame_of_a_damaged_journal_takes_away_no_message(tmp_path: Path) -> None:
    file = torn(tmp_path)
    file.write_bytes(file.read_bytes().replace(b"tea", b"ash"))
    lines = [json.loads(line) for line in exported(tmp_path, print)]
    assert [(each["kind"], each["queue"]) for each in lines] == [("message", 1)]
