"""A store that is damaged while its broker is live, and what of its messages comes back then.

The broker is a process that is killed, the damage is done to its files, and the next one begins:
with the rings that are there, or from the journal alone, as after a power loss.
"""

from __future__ import annotations

import os
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import shmbroker
from shmbroker.ipc.base.errors import JournalDamaged
from shmbroker.ipc.broker.journaler import Journaler, restore
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.machine.process import Process

SEGMENT = 64 << 10
PAGE = 4096
NODE, OTHER_NODE = bytes(range(16)), bytes(range(16, 32))
PATIENCE = 60
ARENA = 16 << 20

Damage = Callable[[Path], None]


# --- the broker -----------------------------------------------------------------------------------


class Live:
    """A broker of one vhost and one journal, in a process of its own."""

    def __init__(self, vhost: str, folder: Path, epoch: int, *, prepared: bool = False) -> None:
        self.folder = folder
        began, says = os.pipe()
        stops, self._stop = os.pipe()

        def work() -> int:
            with (
                shmbroker.connect(f"shm://{vhost}", name=f"live {epoch}") as broker,
                Journaler(folder, segment_bytes=SEGMENT, node=NODE) as journaler,
            ):
                if prepared:
                    journaler.begin(epoch)
                journaler.start(broker, epoch)
                os.write(says, b"!")
                os.read(stops, 1)
            return 0

        self.process = Process(work, folder.parent / f"errors {epoch}")
        os.close(says)
        os.close(stops)
        said = os.read(began, 1)
        os.close(began)
        assert said, (folder.parent / f"errors {epoch}").read_text()

    def ends(self, *, in_order: bool) -> None:
        if in_order:
            os.write(self._stop, b"!")
            assert self.process.has_ended(PATIENCE)
        else:
            self.process.kill()
        os.close(self._stop)


@contextmanager
def live(
    vhost: str, folder: Path, epoch: int, *, in_order: bool = False, prepared: bool = False
) -> Iterator[Live]:
    one = Live(vhost, folder, epoch, prepared=prepared)
    try:
        yield one
    finally:
        one.ends(in_order=in_order)


def is_noted(folder: Path) -> bool:
    """Whether it is noted how far it was synced, up to now."""
    with Replay(folder) as replay:
        last = list(replay)[-1]
    end = last.offset + 32 + (len(last.body) + 7) // 8 * 8
    return struct.unpack_from("=8xqq", (folder / "reached").read_bytes()) == (last.serial, end)


def is_whole(folder: Path) -> bool:
    with suppress(JournalDamaged), Replay(folder) as replay:
        return all(True for _ in replay)
    return False


def until(done: Callable[[], bool], what: str) -> None:
    ends_at = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < ends_at, f"not in time: {what}"
        time.sleep(0.01)


# --- what is in it --------------------------------------------------------------------------------


def bodies() -> list[bytes]:
    return [b"%d " % number + b"x" * 200 for number in range(1200)]


def publish(vhost: str) -> dict[str, list[bytes]]:
    """Confirmed in several segments, some of it consumed: what is left, by queue."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        orders = broker.declare_queue("orders", durable=True, slots=2048)
        few = broker.declare_queue("few", durable=True, slots=64)
        all_of_it = bodies()
        for at in range(0, len(all_of_it), 40):
            orders.publish_many(all_of_it[at : at + 40], timeout=PATIENCE)
            if at % 400 == 0:
                few.publish(b"few %d" % at, timeout=PATIENCE)
        taken = [orders.get(timeout=PATIENCE) for _ in range(150)]
        for message in [*taken[:100], *taken[120:]]:
            message.ack()
        for message in taken[100:120]:
            message.give_back()
        with_few = [b"few %d" % at for at in range(0, len(all_of_it), 400)]
        return {"orders": [*all_of_it[100:120], *all_of_it[150:]], "few": with_few}


def told(vhost: str) -> list[str]:
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        return [each.text for each in broker.errors()]


def what_is_there(vhost: str) -> dict[str, list[bytes]]:
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        return {
            name: [message.body for message in broker.queue(name).browse()]
            for name in ("orders", "few")
        }


def after_a_power_loss(vhost: str, folder: Path, epoch: int) -> dict[str, list[bytes]] | str:
    """What the journal has, or why it is refused."""
    vhosts.delete(vhost, force=True)
    vhosts.create(vhost, arena_bytes=ARENA)
    with (
        shmbroker.connect(f"shm://{vhost}", name="broker") as broker,
        Journaler(folder, segment_bytes=SEGMENT, node=NODE) as journaler,
    ):
        try:
            restored = restore(broker, folder)
        except JournalDamaged as error:
            return str(error)
        journaler.start(broker, epoch, restored)
        return what_is_there(vhost)


# --- damage ---------------------------------------------------------------------------------------


def segments(folder: Path) -> list[Path]:
    """Those with messages, the oldest first: the last one is the one that is written."""
    with Replay(folder, salvage=True) as replay:
        names = {record.segment for record in replay if record.kind == records.MESSAGE}
    return [folder / name for name in sorted(names)]


def written(path: Path) -> int:
    """Where its last record begins."""
    with Replay(path.parent, salvage=True) as replay:
        return max(record.offset for record in replay if record.segment == path.name)


def missing(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    os.truncate(path, (PAGE + written(path)) // 2)


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def zeroed(path: Path) -> None:
    middle = (PAGE + written(path)) // 2
    overwrite(path, middle, bytes(path.stat().st_size - middle))


def blank(path: Path) -> None:
    overwrite(path, 0, bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    at = (PAGE + written(path)) // 2
    overwrite(path, at, bytes([path.read_bytes()[at] ^ 1]))


def flipped_header(path: Path) -> None:
    overwrite(path, 40, bytes([path.read_bytes()[40] ^ 1]))


def foreign(path: Path) -> None:
    """The segment of the same number of another store."""
    other = path.parent.parent / "other"
    serial = int(path.name.partition(".")[0], 16)
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir()
    (other / f"{serial - 1:016x}.journal").write_bytes(b"")
    with Journal(other, epoch=1, segment_bytes=SEGMENT, node=OTHER_NODE) as journal:
        for position in range(20):
            journal.message(77, position, b"theirs")
        journal.commit()
        shutil.copyfile(other / path.name, path)


DAMAGES: dict[str, Damage] = {
    "missing": missing,
    "cut": cut,
    "zeroed": zeroed,
    "blank": blank,
    "flipped": flipped,
    "flipped header": flipped_header,
    "foreign": foreign,
}
