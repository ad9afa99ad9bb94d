"""A member takes over from another one, written down call by call, and what it has after a crash at
any of them.

    python -m tests.support.takeover_script record STORE VHOST
    python -m tests.support.takeover_script check TRACE STORE VHOST

The first one with native/storage.c preloaded, for the folder `journal` of the store.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.replica.warm import Warm
from tests.support.host import PATIENCE
from tests.support.storage import MARKED, Folder, Storage, entries, write_folder

NODE = b"n" * 16
ONE, TWO = b"one is live", b"two is live"
BEGINS = 0
"""The mark from which on it takes over."""
SEGMENT_BYTES = 64 << 10
ARENA_BYTES = 16 << 20
VALUES = ("all", "configuration", "none")
BODIES = [b"%d" % number for number in range(10)]
SHARES = (0.0, 0.5, 1.0)

Found = dict[str, tuple[int, int, bool]]
"""Of each queue: how many messages, how many of them are scheduled, whether it is bound."""
ALL: Found = {value: (len(BODIES), 1, True) for value in VALUES}
REPLICATED: Found = {"all": (len(BODIES), 1, True), "configuration": (0, 0, True)}


# --- the takeover ---------------------------------------------------------------------------------


def fill(broker: Broker) -> None:
    broker.declare_exchange("sales", "fanout", replicate="all")
    for value in VALUES:
        queue = broker.declare_queue(value, durable=True, slots=64, replicate=value)
        broker.bind("sales", value)
        for body in BODIES:
            queue.publish(body, timeout=PATIENCE)
        queue.publish(b"later", deliver_after=3600.0, timeout=PATIENCE)


def warm(store: Path, vhost: str) -> Warm:
    return Warm(store, vhost, node=NODE, arena_bytes=ARENA_BYTES, segment_bytes=SEGMENT_BYTES)


def taken_over(store: Path, vhost: str, *, of_another: bool) -> Found:
    replica = warm(store, vhost)
    begins = lambda journaler: journaler.standing(TWO)  # noqa: E731
    broker, journaler = replica.take_over(2, begins, of_another=of_another)
    with broker, journaler:
        found = what_is_there(vhost)
        journaler.stop()
        replica.let_go()
    return found


def what_is_there(vhost: str) -> Found:
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        bound = {each.destination for each in broker.bindings()}
        return {
            each.name: (
                len(list(broker.queue(each.name).browse())),
                len(list(broker.queue(each.name).scheduled())),
                each.name in bound,
            )
            for each in broker.queues()
        }


def record(store: Path, vhost: str) -> None:
    vhosts.delete(vhost, force=True)
    vhosts.create(vhost, arena_bytes=ARENA_BYTES)
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        Journaler(store / "journal", node=NODE, segment_bytes=SEGMENT_BYTES) as journaler,
    ):
        journaler.standing(ONE)
        journaler.start(broker, 1)
        fill(broker)
        journaler.stop()
    vhosts.delete(vhost, force=True)
    ctypes.CDLL(None).storage_mark(ctypes.c_int64(BEGINS))
    taken_over(store, vhost, of_another=True)


# --- what it has after a crash --------------------------------------------------------------------


def states(trace: Path) -> Iterator[tuple[str, Folder]]:
    """After each call of the takeover."""
    random, storage, begins = Random(1), Storage(), False
    for number, entry in enumerate(entries(trace)):
        storage.apply(entry)
        begins |= entry.kind == MARKED and entry.offset == BEGINS
        if begins:
            yield f"call {number}, killed", storage.after_kill()
        for share in SHARES if begins else ():
            name = f"call {number}, power loss, {share:.0%} of the rest is left"
            yield name, storage.after_power_loss(random, share)


def standing(store: Path, vhost: str) -> bytes:
    with warm(store, vhost) as replica:
        return replica.standing


def judge(content: Folder, store: Path, vhost: str) -> bytes:
    """Who is live, as its journal says: before the frame that says so nothing is done, and with it
    all."""
    write_folder(store / "journal", content)
    live = standing(store, vhost)
    expected = {False: ALL if live == ONE else REPLICATED, True: REPLICATED}
    for of_another in (False, True) if live == ONE else (False,):
        write_folder(store / "journal", content)
        found = taken_over(store, vhost, of_another=of_another)
        vhosts.delete(vhost, force=True)
        if found != expected[of_another]:
            raise AssertionError(f"{live!r}, of another {of_another}: {found}")
    return live


def check(trace: Path, store: Path, vhost: str) -> str:
    seen, counts = set(), Counter[bytes]()
    for name, content in states(trace):
        key = hash(frozenset(content.items()))
        if key in seen:
            continue
        seen.add(key)
        try:
            counts[judge(content, store, vhost)] += 1
        except (AssertionError, Error) as objection:
            return f"{name}: {objection}"
    return f"{counts[ONE]} states before, {counts[TWO]} after, {len(seen)} are well"


def main() -> None:
    verb, *rest = sys.argv[1:]
    if verb == "record":
        record(Path(rest[0]), rest[1])
        print("recorded")  # noqa: T201
    else:
        print(check(Path(rest[0]), Path(rest[1]), rest[2]))  # noqa: T201


if __name__ == "__main__":
    main()
