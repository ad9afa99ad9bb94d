"""A durable queue that pages, written down call by call, and what is there after a crash.

    python -m tests.ipc.paging_script record STORE SEED       with native/storage.c preloaded
    python -m tests.ipc.paging_script check TRACE STORE SEED EVERY

Messages are numbered.  After any crash those that are there follow each other without a gap, from
one that may not have been taken before, to one that is behind all that were confirmed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import shmbroker
from shmbroker import Broker, Empty, NotFound
from shmbroker.ipc import vhost as vhosts
from shmbroker.ipc.errors import Error
from shmbroker.ipc.journaler import Journaler, restore
from shmbroker.ipc.pager import Pager
from tests.ipc.storage import MARKED, UNLINKED, WRITTEN, Folder, Storage, entries

SLOTS = 16
SEGMENT = 64 << 10
PAGE_BYTES = 4 << 10
STEPS = 40
ARENA = 16 << 20
PATIENCE = 20
CONFIRMED, TAKEN = range(2)
SHARES = (0.0, 0.5, 1.0)


@contextmanager
def working(vhost: str, store: Path, epoch: int, *, restores: bool = False) -> Iterator[Broker]:
    (store / "journal").mkdir(exist_ok=True)
    with (
        shmbroker.connect(f"shm://{vhost}", name="broker") as broker,
        Journaler(store / "journal", segment_bytes=SEGMENT) as journaler,
    ):
        journaler.start(broker, epoch, restore(broker, store / "journal") if restores else None)
        with Pager(broker, store / "pages", page_bytes=PAGE_BYTES, epoch=epoch) as pager:
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


def record(store: Path, seed: int) -> None:
    shim, random = ctypes.CDLL(None), Random(seed)
    published = taken = 0

    def mark(what: int, number: int) -> None:
        shim.storage_mark(ctypes.c_int64(2 * number + what))

    with memory() as vhost:
        for epoch in (1, 2):
            with working(vhost, store, epoch) as broker:
                queue = broker.declare_queue(
                    "orders", slots=SLOTS, durable=True, when_full="page", max_deliveries=None
                )
                for _ in range(STEPS):
                    if published == taken or random.random() < (0.7 if epoch == 1 else 0.4):
                        size = random.choice((0, 40, 300))
                        several = range(published, published + random.choice((1, 1, 5, 40)))
                        queue.publish_many(
                            [each.to_bytes(8, "little") + bytes(size) for each in several],
                            timeout=PATIENCE,
                        )
                        published = several.stop
                        mark(CONFIRMED, published)
                    else:
                        many = random.choice((1, 10, 30))
                        mark(TAKEN, taken + many)
                        with suppress(Empty):
                            for body in queue.receive_many(many, timeout=PATIENCE):
                                assert number_of(body) == taken
                                taken += 1


def states(trace: Path, seed: int, every: int) -> Iterator[tuple[str, Folder, int, int]]:
    random, storage, confirmed, taken = Random(seed), Storage(), 0, 0
    for number, entry in enumerate(entries(trace)):
        storage.apply(entry)
        if entry.kind == MARKED:
            value, what = divmod(entry.offset, 2)
            confirmed = value if what == CONFIRMED else confirmed
            taken = value if what == TAKEN else taken
        wanted = entry.kind == UNLINKED and ".page" in entry.name
        if confirmed and (number % every == 0 or (wanted and number % 4 == 0)):
            share = random.choice(SHARES)
            name = f"call {number}, power loss, {share:.0%} of the rest is left"
            yield name, storage.after_power_loss(random, share), confirmed, taken
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
                got += map(number_of, queue.receive_many(timeout=2))
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
    if verb == "record":
        store, seed = rest
        record(Path(store), int(seed))
        print("recorded")  # noqa: T201
    else:
        trace, store, seed, every = rest
        print(check(Path(trace), Path(store), int(seed), int(every)))  # noqa: T201


if __name__ == "__main__":
    main()
