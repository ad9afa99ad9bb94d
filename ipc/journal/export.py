"""A journal as lines of JSON, and back; and a journal made small while nobody writes it.

A line is a record: `kind` (a name, or a number), `queue`, `position`, `body` in base64, and where
it was: `segment`, `offset`, `frame`, and `last` of its frame, which a line that is imported need
not have.  The records that belong together, up to a `last`, are committed together again.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from shmbroker.core import layout
from shmbroker.ipc.base.errors import InvalidArgument, JournalDamaged
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.journal import ALL_POSITIONS, Journal
from shmbroker.ipc.journal.replay import KIND_NAMES, Record, Replay, Report, frame_text

KINDS = {name: value for value, name in KIND_NAMES.items()}
STEP_BYTES = 1 << 20
OF_A_QUEUE = (records.QUEUE, records.RETIRED, records.PRODUCERS)
OF_WHOLE_FRAMES: Final = (records.RETIRED, records.QUEUES, records.QUEUE_GONE)
"""What messages that were confirmed are not needed for any more."""
NUMBER = (1 << 63) - 1
"""Of a queue: its lists of ids are kept by the same with the sign bit."""


def line_of(record: Record) -> str:
    """A record as a line, without its end."""
    fields = {
        "kind": KIND_NAMES.get(record.kind, record.kind),
        "queue": record.queue,
        "position": record.position,
        "body": b64encode(record.body).decode(),
        "segment": record.segment,
        "offset": record.offset,
        "frame": frame_text(record.frame),
        "last": record.last,
    }
    return json.dumps(fields)


def exported(folder: str | Path, noted: Callable[[str], object]) -> Iterator[str]:
    """Of a damaged journal all records that check, as lines; `noted` is told of what does not."""
    told = _salvaged if _is_damaged(folder) else _sound
    yield from (line_of(each) for each in told(folder, noted) if each.kind != records.SEGMENTS)


def _is_damaged(folder: str | Path) -> bool:
    try:
        _report(folder, lambda text: None)
    except JournalDamaged:
        return True
    return False


def _sound(folder: str | Path, noted: Callable[[str], object]) -> Iterator[Record]:
    with Replay(folder, noted=noted) as replay:
        yield from replay


def _salvaged(folder: str | Path, noted: Callable[[str], object]) -> Iterator[Record]:
    """A crash may have torn the last frame: unless it is whole, nobody was told that it is there,
    and what is in it takes away nothing that was confirmed before."""
    notes, sound = 0, 0
    frame: list[Record] = []

    def counted(text: str) -> None:
        nonlocal notes
        notes += 1
        noted(text)

    with Replay(folder, salvage=True, noted=counted) as replay:
        before = 0
        for record in replay:
            if frame and record.frame != frame[0].frame:
                yield from frame
                frame, before = [], sound
            frame.append(record)
            sound = notes
    is_whole = sound == before and all(record.last for record in frame[-1:])
    yield from (each for each in frame if is_whole or each.kind not in OF_WHOLE_FRAMES)


def _number(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and -NUMBER - 1 <= value <= NUMBER:
        return value
    raise InvalidArgument(f"expected {name} to be a number of 64 bits, not {json.dumps(value)}")


def record_of(line: str | bytes) -> tuple[int, int, int, bytes, bool]:
    """Kind, queue, position, body, and whether it is the last one of its frame."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise ValueError(f"found {type(fields).__name__}")
        body = b64decode(str(fields.get("body", "")), validate=True)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"expected a JSON object with a body in base64: {error}") from error
    kind = fields.get("kind")
    if isinstance(kind, str):
        if kind not in KINDS:
            raise InvalidArgument(f"{kind!r} is none of {', '.join(KINDS)}, and no number")
        kind = fields["kind"] = KINDS[kind]
    queue, position = _number(fields, "queue"), _number(fields, "position")
    return _number(fields, "kind"), queue, position, body, bool(fields.get("last", True))


def numbers_in(body: bytes) -> set[int]:
    """Of queues, as a record of kind QUEUES has them."""
    return {number for (number,) in struct.iter_unpack("=q", body[: len(body) & -8])}


def _number_bytes(queue: int) -> bytes:
    return struct.pack("=q", queue)


class _State:
    """What is not a message, as a new segment needs it: of each record the last one that is so."""

    def __init__(self) -> None:
        self._records: dict[tuple[Any, ...], tuple[int, int, int, bytes]] = {}
        self._queues: set[int] | None = None
        """Those that are there, if it was said at any time which are."""

    def note(self, kind: int, queue: int, position: int, body: bytes) -> None:
        if kind in (records.SEGMENTS, records.MESSAGE, records.IDS, records.COPIED):
            return
        if kind == records.QUEUES:
            self._queues = numbers_in(body)
            for unplaced in [key for key in self._records if key[0] == records.UNPLACED]:
                del self._records[unplaced]
            for gone in {of for what, of, *_ in self._records if what in OF_A_QUEUE} - self._queues:
                self._forget(gone)
            return
        if self._queues is not None and kind == records.QUEUE_GONE:
            self._queues.discard(queue)
            self._forget(queue)
            return
        if self._queues is not None and kind == records.QUEUE:
            self._queues.add(queue)
        if kind == records.UNPLACED:
            self._records.pop((kind, position), None)
            if body:
                self._records[kind, position] = (kind, queue, position, body)
            return
        same: tuple[Any, ...] = (kind, queue, position, body)
        if kind in OF_A_QUEUE:
            same = (kind, queue, bool(body))
        self._records.pop(same, None)
        self._records[same] = (kind, queue, position, body)

    def _forget(self, queue: int) -> None:
        for kind in OF_A_QUEUE:
            for has_body in (False, True):
                self._records.pop((kind, queue, has_body), None)

    def stage(self, journal: Journal) -> None:
        if self._queues is not None:
            journal.stage(records.QUEUES, 0, 0, b"".join(map(_number_bytes, self._queues)))
        for kind, queue, position, body in self._records.values():
            journal.stage(kind, queue, position, body)


class _Repeated:
    """Which frames of others the newest one repeats: its author's, and that of the live."""

    def __init__(self) -> None:
        self._frame, self._copied = 0, list[bytes]()

    def note(self, record: Record) -> None:
        if record.frame != self._frame:
            self._frame, self._copied = record.frame, []
        if record.kind == records.COPIED:
            self._copied.append(record.body)

    def stage(self, journal: Journal) -> None:
        for body in self._copied:
            journal.stage(records.COPIED, 0, 0, body)

    def commit(self, journal: Journal) -> None:
        """What is staged, as a frame that repeats them as well."""
        self.stage(journal)
        journal.commit()


def imported(folder: str | Path, lines: Iterable[str | bytes], segment_bytes: int = 0) -> int:
    """Write what the lines say into a folder that has no journal: how many records."""
    if list(Path(folder).glob("*.journal")):
        raise InvalidArgument(f"{folder} has a journal: import into an empty folder")
    (Path(folder) / "reached").unlink(missing_ok=True)  # of one that was removed
    state, count, staged = _State(), 0, list[tuple[int, int, int, bytes]]()
    with Journal(folder, segment_bytes=segment_bytes, snapshot=state.stage) as journal:

        def commit() -> None:
            journal.commit()
            for record in staged:
                state.note(*record)
            staged.clear()

        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                kind, queue, position, body, last = record_of(line)
                journal.stage(kind, queue, position, body)
            except InvalidArgument as error:
                raise InvalidArgument(f"line {number}: {error}") from error
            staged.append((kind, queue, position, body))
            count += 1
            if last:
                commit()
        commit()
    return count


def _is_numbered(chunk: bytes) -> bool:
    """Whether the message has an id, or a number: of a producer, of a stream from elsewhere, or of
    what came out of pages."""
    if len(chunk) < layout.CHUNK_HEADER_BYTES:
        return False
    _, origin, _, mark = struct.unpack_from("=4Q", chunk)
    return bool(origin or mark >> layout.MARK_FLAGS_SHIFT & layout.CHUNK_ONCE)


class Needed:
    """What the records of retirement say; and what the newest segment has of messages that are
    known by an id or a number, which is in no list before the next segment begins."""

    def __init__(self) -> None:
        self.heads: dict[int, int] = {}
        self._queues: set[int] | None = None
        self._beyond: dict[int, tuple[int, bytes]] = {}
        self._unlisted: dict[int, set[int]] = {}

    def segment(self) -> None:
        self._unlisted.clear()

    def lowest(self, queue: int) -> int:
        """Where the first message is that is needed."""
        return min(self._unlisted.get(queue, set()), default=ALL_POSITIONS)

    def note(self, record: Record) -> None:
        if record.kind == records.MESSAGE and _is_numbered(record.body):
            self._unlisted.setdefault(record.queue, set()).add(record.position)
        elif record.kind == records.RETIRED:
            self.heads[record.queue] = max(record.position, self.heads.get(record.queue, 0))
            if record.body:
                self._beyond[record.queue] = (record.position, record.body)
        elif record.kind == records.QUEUE_GONE:
            self._gone(record.queue)
        elif record.kind == records.QUEUE and self._queues is not None:
            self._queues.add(record.queue)
        elif record.kind == records.QUEUES:
            self._queues = numbers_in(record.body)
            for queue in self.heads.keys() - self._queues:
                self._gone(queue)

    def _gone(self, queue: int) -> None:
        self.heads[queue] = ALL_POSITIONS
        self._unlisted.pop(queue, None)

    def __call__(self, queue: int, position: int) -> bool:
        if self._queues is not None and queue & NUMBER not in self._queues:
            return False
        return position in self._unlisted.get(queue, ()) or self.is_there(queue, position)

    def is_there(self, queue: int, position: int) -> bool:
        """Not acknowledged, and not deleted with its queue."""
        if self._queues is not None and queue & NUMBER not in self._queues:
            return False
        if position < self.heads.get(queue, 0):
            return False
        first, bits = self._beyond.get(queue, (0, b""))
        byte, bit = divmod(position - first, 8)
        return not (0 <= byte < len(bits) and bits[byte] >> bit & 1)


def verified(folder: str | Path, noted: Callable[[str], object]) -> Report:
    """Read all of it: what was found; `noted` is told of ends that were cut, and of damage."""
    notes: list[str] = []
    try:
        report = _report(folder, notes.append)
    except JournalDamaged:
        report = _report(folder, noted, salvage=True)
        if not report.damages:
            raise
        return report
    for note in notes:
        noted(note)
    return report


def _report(
    folder: str | Path, noted: Callable[[str], object], *, salvage: bool = False
) -> Report:
    with Replay(folder, salvage=salvage, noted=noted) as replay:
        for _ in replay:
            pass
        return replay.report()


def compacted(
    folder: str | Path, noted: Callable[[str], object], segment_bytes: int = 0
) -> tuple[int, int]:
    """Write the messages that are needed anew, and let go of the segments before: bytes before and
    after.  Nobody else may write the journal meanwhile."""
    before = folder_bytes(folder)
    state, needed, repeated, newest = _State(), Needed(), _Repeated(), 0

    def snapshot(journal: Journal) -> None:
        state.stage(journal)
        repeated.stage(journal)

    with Replay(folder, noted=noted) as replay:
        for record in replay:
            if record.serial != newest:  # a segment begins with all that is needed
                newest, state = record.serial, _State()
                needed.segment()
            state.note(record.kind, record.queue, record.position, record.body)
            needed.note(record)
            repeated.note(record)
        epoch = replay.report().epoch
        with Journal(
            folder, epoch=None, segment_bytes=segment_bytes, node=replay.node, snapshot=snapshot
        ) as journal:
            journal.begin(epoch, replay)
            for queue, head in needed.heads.items():
                journal.retire(queue, min(head, needed.lowest(queue)))
            repeated.commit(journal)
            while journal.compact(100, STEP_BYTES, needed):
                repeated.commit(journal)
            journal.commit()
            journal.clear()
            repeated.commit(journal)  # behind the list of what is left
            journal.wait()
    return before, folder_bytes(folder)


def folder_bytes(folder: str | Path) -> int:
    return sum(path.stat().st_size for path in Path(folder).glob("*.journal"))
