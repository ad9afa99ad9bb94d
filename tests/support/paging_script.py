"""A durable queue that pages, written down call by call, and what is there after a crash.

    python -m tests.support.paging_script record STORE SEED       with native/storage.c preloaded
    python -m tests.support.paging_script check TRACE STORE SEED EVERY

PAGING_MUTANT: the guard that is removed, if one is.

Messages are numbered.  After any crash those that are there follow each other without a gap, from
one that may not have been taken before, to one that is behind all that were confirmed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random

import shmbroker
from shmbroker import Broker, Empty, NotFound, Queue
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.broker.journaler import Journaler, restore
from shmbroker.ipc.paging.pager import Pager
from shmbroker.ipc.vhost import vhost as vhosts
from tests.support.paging_mutants import MUTANTS
from tests.support.storage import FOLDER_SYNCED, MARKED, UNLINKED, WRITTEN, Folder, Storage, entries

SLOTS = 16
SEGMENT = 64 << 10
PAGE_BYTES = 4 << 10
STEPS = 40
ARENA = 16 << 20
PATIENCE = 60.0
CONFIRMED, TAKEN = range(2)
SHARES = (0.0, 0.5, 1.0)


@contextmanager
def working(
    vhost: str,
    store: Path,
    epoch: int,
    fill: Callable[[Queue], None] | None = None,
    *,
    restores: bool = False,
) -> Iterator[Broker]:
    (store / "journal").mkdir(exist_ok=True)
    with (
        shmbroker.connect(f"shm://{vhost}", name="broker") as broker,
        Journaler(store / "journal", segment_bytes=SEGMENT) as journaler,
    ):
        journaler.start(broker, epoch, restore(broker, store / "journal") if restores else None)
        pages = partial(Pager, broker, store / "pages", page_bytes=PAGE_BYTES, epoch=epoch)
        if fill:
            with pages():
                queue = broker.declare_queue(
                    "orders", slots=SLOTS, durable=True, when_full="page", max_deliveries=None
                )
            fill(queue)
        with pages() as pager:
            yield broker
            if pager.failure:
                raise pager.failure


@contextmanager
def memory() -> Iterator[str]:
    name = f"test-{os.getppid()}-{os.getpid()}"
    vhosts.create(name, arena_bytes=ARENA)
    try:
        yield name
    finally:
        vhosts.delete(name, force=True)


def number_of(body: bytes) -> int:
    return int.from_bytes(body[:8], "little")


class Recorder:
    """Marks in the trace what was confirmed, and what may have been taken."""

    def __init__(self, seed: int) -> None:
        self.shim, self.random = ctypes.CDLL(None), Random(seed)
        self.published = self.taken = 0

    def mark(self, what: int, number: int) -> None:
        self.shim.storage_mark(ctypes.c_int64(2 * number + what))

    def publish(self, queue: Queue, many: int) -> None:
        size = self.random.choice((0, 40, 300))
        several = range(self.published, self.published + many)
        queue.publish_many(
            [each.to_bytes(8, "little") + bytes(size) for each in several], timeout=PATIENCE
        )
        self.published = several.stop
        self.mark(CONFIRMED, self.published)

    def take(self, queue: Queue, many: int) -> None:
        self.mark(TAKEN, self.taken + many)
        with suppress(Empty):
            for body in queue.receive_many(many, timeout=PATIENCE):
                assert number_of(body) == self.taken
                self.taken += 1

    def fill(self, queue: Queue) -> None:
        """The pager will find room in the ring for a part of what is in the inbox."""
        self.publish(queue, 3 * SLOTS)
        self.take(queue, SLOTS // 2)

    def work(self, queue: Queue, share_of_publishing: float) -> None:
        for _ in range(STEPS):
            if self.published == self.taken or self.random.random() < share_of_publishing:
                self.publish(queue, self.random.choice((1, 1, 5, 40)))
            else:
                self.take(queue, self.random.choice((1, 10, 30)))


def record(store: Path, seed: int) -> None:
    recorder = Recorder(seed)
    with memory() as vhost:
        with working(vhost, store, 1, recorder.fill) as broker:
            recorder.work(broker.queue("orders"), 0.7)
        with working(vhost, store, 2) as broker:
            recorder.work(broker.queue("orders"), 0.4)


def states(trace: Path, seed: int, every: int) -> Iterator[tuple[str, Folder, int, int]]:
    random, storage, confirmed, taken = Random(seed), Storage(), 0, 0
    for number, entry in enumerate(entries(trace)):
        storage.apply(entry)
        if entry.kind == MARKED:
            value, what = divmod(entry.offset, 2)
            confirmed = value if what == CONFIRMED else confirmed
            taken = value if what == TAKEN else taken
        if confirmed and number % every == 0:
            share = random.choice(SHARES)
            name = f"call {number}, power loss, {share:.0%} of the rest is left"
            yield name, storage.after_power_loss(random, share), confirmed, taken
        if confirmed and entry.kind == UNLINKED and ".page" in entry.name:
            name = f"call {number}, power loss, files are gone, and nothing else is done"
            yield name, storage.after_power_loss(random, 0, 1), confirmed, taken
        if confirmed and entry.kind == FOLDER_SYNCED and "pages/" in entry.name:
            name = f"call {number}, power loss, when a page file is there"
            yield name, storage.after_power_loss(random, 0), confirmed, taken
        if confirmed and number % (4 * every) == 0 and entry.kind == WRITTEN:
            yield f"call {number}, killed", storage.after_kill(), confirmed, taken


def write_tree(store: Path, content: Folder) -> None:
    for path in store.iterdir():
        shutil.rmtree(path)
    for name, data in content.items():
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_bytes(data)


def objection(store: Path, confirmed: int, taken: int) -> str:
    """Restore it, and take all that is there."""
    got: list[int] = []
    with memory() as vhost, working(vhost, store, 3, restores=True) as broker:
        try:
            queue = broker.queue("orders")
        except NotFound:
            return "there is no queue"
        with suppress(Empty):
            while queue.statistics().depth:
                got += map(number_of, queue.receive_many(timeout=PATIENCE))
        said = [each.text for each in broker.errors() if "pages" in each.text]
        if queue.statistics().depth:
            said.append(f"{queue.statistics().depth} are there, and do not come")
    if said:
        return f"{len(said)} notes: {said[0]}"
    first, end = (got[0], got[-1] + 1) if got else (confirmed, confirmed)
    if got != list(range(first, end)):
        return f"not in order, or a gap: {got}"
    if first > taken or end < confirmed:
        return f"{first} to {end}, but {taken} was taken and {confirmed} confirmed"
    return ""


def check(trace: Path, store: Path, seed: int, every: int) -> str:
    count = 0
    for name, content, confirmed, taken in states(trace, seed, every):
        count += 1
        write_tree(store, content)
        try:
            found = objection(store, confirmed, taken)
        except Error as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            return f"{name}: {found}"
    return f"{count} states are well"


def main() -> None:
    verb, *rest = sys.argv[1:]
    removed = os.environ.get("PAGING_MUTANT")
    with ExitStack() as without:
        for mutant in MUTANTS:
            if mutant.name == removed:
                without.enter_context(mutant.applied())
        work(verb, rest)


def work(verb: str, rest: list[str]) -> None:
    if verb == "record":
        store, seed = rest
        record(Path(store), int(seed))
        print("recorded")  # noqa: T201
    else:
        trace, store, seed, every = rest
        print(check(Path(trace), Path(store), int(seed), int(every)))  # noqa: T201


if __name__ == "__main__":
    main()
