"""A journal at work, written down call by call, and what may be read after a crash at any of them.

    python -m tests.support.journal_script record FOLDER SEED     with native/storage.c preloaded
    python -m tests.support.journal_script check TRACE FOLDER SEED [EVERY]

The script follows from the seed, so that who checks knows what was staged, confirmed and retired.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from tests.support.journal_mutants import without_guard
from tests.support.storage import MARKED, Folder, Storage, entries, write_folder

SEGMENT_BYTES = 32 << 10
STEPS = 150
QUEUES = (1, 2, 3)
SHARES = (0.0, 0.5, 0.9, 1.0)


class Objection(Exception):
    """What was read is not what was written."""


def body_of(queue: int, position: int, size: int) -> bytes:
    """Some are of one byte again and again, so that what is left of a recycled file looks alike."""
    return b"%d/%d " % (queue, position) + bytes([queue]) * size


@dataclass(frozen=True, slots=True)
class Step:
    """What one commit has, and what is done behind it."""

    messages: tuple[tuple[int, int, int], ...]
    heads: tuple[tuple[int, int], ...]
    then: str


def script(seed: int) -> Iterator[Step]:
    random = Random(seed)
    tails, heads = dict.fromkeys(QUEUES, 0), dict.fromkeys(QUEUES, 0)
    for number in range(STEPS):
        messages = []
        for _ in range(random.choice((1, 1, 1, 2, 8))):
            queue = random.choice(QUEUES[1:]) if number % 8 else QUEUES[0]
            size = random.choice((0, 64, 64, 64, 700, 5000) if number % 50 else (40_000,))
            messages.append((queue, tails[queue], size))
            tails[queue] += 1
        retired = []
        for queue in QUEUES[1:]:
            if random.random() < 0.3:
                heads[queue] = random.randint(max(heads[queue], tails[queue] - 8), tails[queue])
                retired.append((queue, heads[queue]))
        if number == STEPS // 2:
            heads[QUEUES[0]] = tails[QUEUES[0]] - 2
            retired.append((QUEUES[0], heads[QUEUES[0]]))
        then = random.choice(("", "", "", "", "", "clear", "compact", "wait"))
        if number % 40 == 39:
            then = random.choice(("reopen", "adopt"))
        yield Step(tuple(messages), tuple(retired), then)


# --- the journal at work --------------------------------------------------------------------------


class Work:
    """The script, run."""

    def __init__(self, folder: str) -> None:
        self.mark = ctypes.CDLL(None).storage_mark
        self.mark.argtypes = [ctypes.c_int64]
        self.folder, self.epoch = folder, 1
        self.heads: dict[int, int] = {}
        self.journal = self.opened()

    def opened(self) -> Journal:
        return Journal(
            self.folder, epoch=None, segment_bytes=SEGMENT_BYTES, snapshot=self.snapshot
        )  # fmt: skip

    def snapshot(self, journal: Journal) -> None:
        for queue, head in self.heads.items():
            journal.stage(records.RETIRED, queue, head)

    def run(self, seed: int) -> None:
        self.journal.begin(self.epoch)
        for number, step in enumerate(script(seed)):
            self.mark(2 * number)
            for queue, position, size in step.messages:
                self.journal.message(queue, position, body_of(queue, position, size))
                if number % 2:  # a write for each page of the frame, as it becomes whole
                    self.journal.ahead()
            for queue, head in step.heads:
                self.journal.stage(records.RETIRED, queue, head)
                self.heads[queue] = head
            self.journal.commit()
            self.mark(2 * number + 1)
            for queue, head in step.heads:
                self.journal.retire(queue, head)
            if step.then:
                getattr(self, step.then)()
        self.journal.close()

    def clear(self) -> None:
        self.journal.clear()

    def wait(self) -> None:
        self.journal.wait()

    def compact(self) -> None:
        while self.journal.compact(50, 2000):
            self.journal.commit()
        self.journal.clear()

    def reopen(self) -> None:
        """As after a crash: what was there stays there."""
        self.epoch += 1
        next_one = self.opened()
        next_one.begin(self.epoch)
        self.journal.close()
        self.journal = next_one
        for queue, head in self.heads.items():
            next_one.retire(queue, head)

    def adopt(self) -> None:
        self.journal.close()
        self.epoch += 1
        with Replay(self.folder) as replay:
            for _ in replay:
                pass
            self.journal = self.opened()
            self.journal.begin(self.epoch, replay)
        for queue, head in self.heads.items():
            self.journal.retire(queue, head)


# --- what may be read -----------------------------------------------------------------------------


@dataclass(slots=True)
class Model:
    """What was confirmed, and what was asked for and not answered yet."""

    sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    heads: dict[int, int] = field(default_factory=lambda: dict.fromkeys(QUEUES, 0))
    asked: Step | None = None

    def confirm(self) -> None:
        assert self.asked
        for queue, position, size in self.asked.messages:
            self.sizes[queue, position] = size
        self.heads.update(self.asked.heads)
        self.asked = None

    def judge(self, folder: Path, again: str) -> None:
        found, heads = read(folder)
        self.compare(found, heads)
        if not again:
            return
        with Replay(folder) as replay:
            for _ in replay:
                pass
            with Journal(folder, epoch=None, segment_bytes=SEGMENT_BYTES) as journal:
                journal.begin(1000, replay if again == "adopt" else None)
                for queue, head in heads.items():
                    journal.stage(records.RETIRED, queue, head)
                journal.commit()
                for queue, head in heads.items():
                    journal.retire(queue, head)
                journal.clear()
                journal.wait()
        if read(folder) != (found, heads):
            raise Objection("what was read once is not there any more, after it was begun anew")

    def compare(self, found: dict[tuple[int, int], bytes], heads: dict[int, int]) -> None:
        asked = {(q, p): size for q, p, size in self.asked.messages} if self.asked else {}
        asked_heads = self.heads | dict(self.asked.heads if self.asked else ())
        for queue in QUEUES:
            if heads[queue] not in (self.heads[queue], asked_heads[queue]):
                raise Objection(f"queue {queue}: head {heads[queue]}, not {self.heads[queue]}")
        for queue, position in self.sizes:
            if position >= heads[queue] and (queue, position) not in found:
                raise Objection(f"queue {queue}: message {position} was confirmed, and is lost")
        for (queue, position), body in found.items():
            size = self.sizes.get((queue, position), asked.get((queue, position)))
            if size is None or body != body_of(queue, position, size):
                raise Objection(f"queue {queue}: message {position} was never written so")
        whole = {each for each in asked if each[1] >= heads[each[0]]}
        if whole & found.keys() not in (set(), whole):
            raise Objection("half of a commit is there")


def read(folder: Path) -> tuple[dict[tuple[int, int], bytes], dict[int, int]]:
    """The messages that are not retired, and the heads."""
    heads, messages = dict.fromkeys(QUEUES, 0), {}
    with Replay(folder) as replay:
        for record in replay:
            if record.kind == records.RETIRED:
                heads[record.queue] = max(record.position, heads[record.queue])
            elif record.kind == records.MESSAGE:
                at = record.queue, record.position
                if messages.setdefault(at, record.body) != record.body:
                    raise Objection(f"two messages at {at}")
    return {at: body for at, body in messages.items() if at[1] >= heads[at[0]]}, heads


def states(trace: Path, seed: int, every: int) -> Iterator[tuple[str, Folder, Model]]:
    """After each call: as it is after a kill, and as it may be after a power loss."""
    random, storage, model, steps = Random(seed), Storage(), Model(), list(script(seed))
    for number, entry in enumerate(entries(trace)):
        storage.apply(entry)
        if entry.kind == MARKED:
            step, confirmed = divmod(entry.offset, 2)
            if confirmed:
                model.confirm()
            else:
                model.asked = steps[step]
        if number % every == 0:
            yield f"call {number}, killed", storage.after_kill(), model
            for share in SHARES:
                name = f"call {number}, power loss, {share:.0%} of the rest is left"
                yield name, storage.after_power_loss(random, share), model


def check(trace: Path, folder: Path, seed: int, every: int) -> str:
    count, seen = 0, set()
    for name, content, model in states(trace, seed, every):
        key = hash((frozenset(content.items()), len(model.sizes), model.asked))
        if key in seen:
            continue
        seen.add(key)
        count += 1
        write_folder(folder, content)
        try:
            model.judge(folder, {0: "adopt", 10: "reopen"}.get(count % 20, ""))
        except (Objection, Error) as objection:
            return f"{name}: {objection}"
    return f"{count} states are well"


def main() -> None:
    verb, *rest = sys.argv[1:]
    if verb == "record":
        folder, seed = rest
        Work(folder).run(int(seed))
        print("recorded")  # noqa: T201
    else:
        trace, folder, seed, every = rest
        print(check(Path(trace), Path(folder), int(seed), int(every)))  # noqa: T201


if __name__ == "__main__":
    with without_guard():
        main()
