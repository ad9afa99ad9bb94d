"""The worlds: what each has, and what is done to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import shmbroker
from tests.attack import ledger
from tests.attack.worker import body_of
from tests.attack.world import World, small_disk

TOKENS = 300


def _until(world: World, deeds: list[Callable[[], None]], pause_s: float) -> None:
    """One deed after the other, by chance, until the time is over."""
    ends = time.monotonic() + world.seconds
    while time.monotonic() < ends:
        time.sleep(world.random.random() * pause_s)
        deed = world.random.choice(deeds)
        deed()
        world.count(deed.__name__)


def pair(folder: Path, seed: int, seconds: float) -> dict[str, object]:
    """Plain and paging durable queues, kills of everything, cold starts."""
    world = World(folder, folder / "store", seed, seconds)
    try:
        world.begin(
            {"plain": {"slots": 1024}, "paging": {"slots": 256, "when_full": "page"}, "line": {}}
        )
        for queue in ("plain", "paging", "line"):
            world.work("produce", queue)
        world.work("produce", "paging")
        world.work("consume", "plain")
        world.work("consume", "paging")
        world.work("consume_in_order", "line")
        deeds = [world.kill_worker] * 4 + [world.kill_live] * 3 + [world.stop_live, world.kill_both]
        deeds += [world.freeze_live] + ([world.cold_start] if seed % 2 else [])
        _until(world, deeds, 1.5)
        world.stop_workers()
        world.heal()
        world.drain("plain", "paging", "line")
        return world.reckon(ordered=("line",))
    finally:
        world.end()


def transfers(folder: Path, seed: int, seconds: float) -> dict[str, object]:
    """Tokens wander in transactions: in the end there is each one, once."""
    world = World(folder, folder / "store", seed, seconds)
    names = ("first", "second", "third")
    try:
        world.begin({"first": {}, "second": {}, "third": {"slots": 64, "when_full": "page"}})
        with shmbroker.connect(f"shm://{world.vhost}") as broker:
            for number in range(TOKENS):
                broker.queue("first").publish(body_of(f"token:{number}", 64))
        for _ in range(3):
            world.work("transfer", *names)
        deeds = [world.kill_worker] * 5 + [world.kill_live] * 2 + [world.kill_both]
        deeds += [world.cold_start] if seed % 2 else []
        _until(world, deeds, 1.0)
        world.stop_workers()
        world.heal()
        rest = world.drain(*names)
        found = sorted(name for each in rest.values() for name in each)
        wanted = sorted(f"token:{number}" for number in range(TOKENS))
        if found != wanted:
            lost = sorted(set(wanted) - set(found))
            twice = sorted({name for name in found if found.count(name) > 1})
            world.wrong.append(f"tokens: lost {lost[:9]}, twice {twice[:9]}")
        return {"seed": seed, "tokens": len(found), "done": world.done, "wrong": world.wrong}
    finally:
        world.end()


def disk(folder: Path, seed: int, seconds: float) -> dict[str, object]:
    """The store is on a disk that is full now and then; everybody waits, and goes on."""
    with small_disk(folder, 20) as small:
        world = World(folder, small / "store", seed, seconds)
        filler = small / "filler"

        def fill() -> None:
            with filler.open("ab", buffering=0) as out, suppress(OSError):
                while True:
                    out.write(bytes(1 << 16))

        def make_room() -> None:
            filler.unlink(missing_ok=True)

        try:
            world.begin({"plain": {"slots": 4096}, "paging": {"slots": 256, "when_full": "page"}})
            for queue in ("plain", "paging"):
                world.work("produce", queue)
                world.work("consume", queue)
            deeds = [fill] * 3 + [make_room] * 2 + [world.kill_live, world.kill_worker]
            _until(world, deeds, 2.0)
            make_room()
            world.stop_workers("produce")
            world.heal()
            for queue in ("plain", "paging"):  # it goes on by itself
                name = f"after:{queue}"
                note = ledger.Writer(world.ledgers / f"{queue}.after").note
                note(ledger.TRIED, name)
                with shmbroker.connect(f"shm://{world.vhost}") as broker:
                    broker.queue(queue).publish(body_of(name, 64), timeout=60)
                note(ledger.CONFIRMED, name)
            world.stop_workers()
            world.drain("plain", "paging")
            return world.reckon()
        finally:
            world.end()


def descriptors(folder: Path, seed: int, seconds: float) -> dict[str, object]:
    """Many durable queues that come and go, and brokers that may open few files."""
    world = World(folder, folder / "store", seed, seconds)
    begin = [each.start for each in world.instances]
    try:
        for each, start in zip(world.instances, begin, strict=True):
            each.start = lambda start=start: start(128)  # type: ignore[method-assign, misc]
        world.begin({"plain": {}})
        world.work("produce", "plain")
        world.work("consume", "plain")
        ends = time.monotonic() + seconds
        made = 0
        while time.monotonic() < ends:
            try:
                with shmbroker.connect(f"shm://{world.vhost}") as broker:
                    for _ in range(300):
                        made += 1
                        queue = broker.declare_queue(f"q{made}", slots=8, durable=True)
                        queue.publish(b"x", timeout=10)
                        if made % 3:
                            broker.delete_queue(f"q{made}")
            except (shmbroker.Unconfirmed, shmbroker.QueueFull):
                continue
            world.random.choice((world.kill_live, world.cold_start))()
            world.count("cold starts and kills")
            world.heal()
        world.stop_workers()
        world.heal()
        world.drain("plain")
        world.done["queues"] = made
        return world.reckon()
    finally:
        world.end()


STRANGER = 54321
STRANGE = """
import os, sys
from pathlib import Path
import shmbroker
shmbroker.connect, shmbroker.Error  # loaded while we may: Python itself may be root's alone
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
vhost, store, victim = sys.argv[1:4]
got = []
def tries(what, *arguments):
    try:
        got.append((what.__name__, what(*arguments)))
    except (OSError, shmbroker.Error):
        pass
def connects():
    with shmbroker.connect(f"shm://{{vhost}}") as broker:
        return broker.queue("plain").get(timeout=0.1)
def creates():
    return shmbroker.connect(f"shm://{{vhost}}", create=True)
for path in [*Path("/dev/shm").glob(f"shmbroker.{{vhost}}*"), *Path(store).glob("**/*")]:
    tries(path.read_bytes)
    tries(path.write_bytes, b"x")
    tries(path.unlink)
tries(connects); tries(creates)
print(got)
"""


def users(folder: Path, seed: int, seconds: float) -> dict[str, object]:
    """Somebody else on the host tries to read, to write, and to put files in the way."""
    mask = os.umask(0)  # as careless as a user may be
    try:
        world = World(folder, folder / "store", seed, seconds)
    finally:
        os.umask(mask)
    victim = folder / "victim"
    victim.write_bytes(b"untouched")
    in_the_way = Path(f"/dev/shm/shmbroker.{world.vhost}.beat")
    try:
        in_the_way.symlink_to(victim)
        os.lchown(in_the_way, STRANGER, STRANGER)
        world.instances[0].start()
        if world.instances[0].wait("live", timeout=5):
            world.count("live in spite of the link")
        world.instances[0].kill()
        if victim.read_bytes() != b"untouched":
            world.wrong.append("the broker has written through a stranger's link")
        in_the_way.unlink(missing_ok=True)
        if shmbroker.vhost.exists(world.vhost):
            shmbroker.vhost.delete(world.vhost, force=True)
        world.begin({"plain": {}})
        world.work("produce", "plain")
        world.work("consume", "plain")
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            said = subprocess.run(
                [sys.executable, "-c", STRANGE.format(uid=STRANGER), world.vhost,
                 str(world.store), str(victim)],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            if said.stdout.strip() != "[]":
                world.wrong.append(f"a stranger got {said.stdout[:300]} {said.stderr[-300:]}")
            world.count("tries")
            world.kill_live()
        world.stop_workers()
        world.heal()
        world.drain("plain")
        return world.reckon()
    finally:
        in_the_way.unlink(missing_ok=True)
        world.end()


WORLDS = {each.__name__: each for each in (pair, transfers, disk, descriptors, users)}
