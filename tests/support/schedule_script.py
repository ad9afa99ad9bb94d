"""A broker at work on durable schedules and last values, written down call by call, and what may be
restored after a crash at any of them.

    python -m tests.support.schedule_script record FOLDER EVENTS VHOST SEED [ANSWER_MS]
    python -m tests.support.schedule_script check TRACE EVENTS FOLDER VHOST SEED EVERY

The first one with native/storage.c preloaded.  With ANSWER_MS the journal has a second end, which
answers so late, and not all publishes are waited for: then several frames are in flight.

Who moves messages is a mover of its own, so what happens does not follow from the seed: it is
written down too, and marks in the trace say when each thing was asked for and confirmed.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from random import Random

import shmbroker
from shmbroker import Broker, Empty
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.broker.journaler import restore
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.micro.ends import Far
from tests.support.host import PATIENCE, journaling
from tests.support.storage import MARKED, Folder, Storage, entries, write_folder

SEGMENT_BYTES = 32 << 10
STEPS = 100
TOGETHER = 12
SHARES = (0.0, 0.5, 1.0)
KEYS = "ab"
ARENA_BYTES = 16 << 20

Event = tuple[str, str, int]
"""publish, ack, give back, value, take; its queue's key or nothing; the message's number."""


class Objection(Exception):
    """What was restored is not what was there."""


# --- the broker at work ---------------------------------------------------------------------------


class Work:
    """Things that are asked for, one after the other."""

    def __init__(self, broker: Broker, seed: int, hurries: bool) -> None:
        self.hurries = hurries
        self.mark = ctypes.CDLL(None).storage_mark
        self.mark.argtypes = [ctypes.c_int64]
        self.random = Random(seed)
        self.events: list[Event] = []
        self.numbers: Counter[str] = Counter()
        self.jobs = broker.declare_queue(
            "jobs", durable=True, slots=64, max_deliveries=None, redelivery_delay=0.002,
            max_scheduled=40,
        )  # fmt: skip
        self.rates = broker.declare_queue(
            "rates", durable=True, slots=16, last_value=True, max_deliveries=None
        )

    def asks(self, what: str, key: str, number: int) -> int:
        self.events.append((what, key, number))
        self.mark(2 * (len(self.events) - 1))
        return 2 * (len(self.events) - 1) + 1

    def publish(self) -> None:
        number, size = self.numbers[""], self.random.choice((0, 64, 900))
        self.numbers[""] += 1
        confirmed = self.asks("publish", "", number)
        delay = self.random.choice((None, 0.0005, 0.002, 60.0))
        body = b"%d " % number + bytes(size)
        if self.hurries and number % 3:
            self.jobs.publish(body, deliver_after=delay, confirm="shm", timeout=PATIENCE)
            return
        self.jobs.publish(body, deliver_after=delay, timeout=PATIENCE)
        self.mark(confirmed)

    def take(self) -> None:
        for message in self.jobs.get_many(self.random.randint(1, 6), timeout=0):
            number = int(message.body.split(b" ")[0])
            if self.random.random() < 0.5:
                self.asks("ack", "", number)
                message.ack()
            else:
                self.asks("give back", "", number)
                message.give_back()

    def value(self) -> None:
        key = self.random.choice(KEYS)
        number = self.numbers[key]
        self.numbers[key] += 1
        confirmed = self.asks("value", key, number)
        self.rates.publish(b"%d" % number, key=key, timeout=PATIENCE)
        self.mark(confirmed)

    def take_value(self) -> None:
        with self.rates.get(timeout=0) as message:
            if self.random.random() < 0.3:
                self.asks("take", str(message.key), int(message.body))
            else:
                message.give_back()

    def run(self) -> None:
        steps = [self.take, self.take_value, self.value, self.value, self.publish, self.publish]
        for step in range(STEPS):
            told = self.jobs.statistics()
            crowded = told.depth + told.scheduled > TOGETHER
            if crowded and told.scheduled == told.depth + told.scheduled:
                self.jobs.purge()
                self.asks("purge", "", self.numbers[""])
            with suppress(Empty):
                self.random.choice(steps[: 4 if crowded else 6])()
            time.sleep(0.004 * (step % 16 == 15))  # else nothing comes due


def record(folder: str, events: str, vhost: str, seed: int, answer_s: float) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        with journaling(vhost, Path(folder), 1, SEGMENT_BYTES) as journaler, ExitStack() as stack:
            work = Work(broker, seed, hurries=bool(answer_s))
            far = stack.enter_context(closing(Far(journaler, answer_s))) if answer_s else None
            work.run()
            if far and far.most < 2:
                raise Objection("no two frames were in flight")
        Path(events).write_text(json.dumps(work.events))


# --- what may be restored -------------------------------------------------------------------------


class Model:
    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.asked: set[int] = set()
        self.confirmed: set[int] = set()
        self.gone: set[int] = set()
        self.given_back: Counter[int] = Counter()
        self.values: dict[str, tuple[int, int]] = dict.fromkeys(KEYS, (-1, -1))
        """Confirmed, and asked for."""
        self.taken = dict.fromkeys(KEYS, -1)
        self.marks = 0

    def mark(self, number: int) -> None:
        self.marks += 1
        what, key, each = self.events[number // 2]
        is_confirmed = number % 2
        if what == "publish":
            (self.confirmed if is_confirmed else self.asked).add(each)
        elif what == "ack":
            self.gone.add(each)
        elif what == "purge":
            self.gone |= set(range(each))
        elif what == "give back":
            self.given_back[each] += 1
        elif what == "value":
            self.values[key] = (each if is_confirmed else self.values[key][0], each)
        else:
            self.taken[key] = each

    def judge(self, broker: Broker) -> None:
        queues = {queue.name for queue in broker.queues()}
        if "jobs" in queues:
            self.judge_jobs(broker)
        elif self.confirmed:
            raise Objection("the queue is not there")
        if "rates" in queues:
            self.judge_values(broker)
        elif any(confirmed >= 0 for confirmed, _asked in self.values.values()):
            raise Objection("the queue of values is not there")

    def judge_jobs(self, broker: Broker) -> None:
        jobs = broker.queue("jobs")
        scheduled = jobs.scheduled()
        found = [int(each.body.split(b" ")[0]) for each in (*jobs.browse(), *scheduled)]
        if len(found) != len(set(found)):
            raise Objection(f"it is there twice: {sorted(found)}")
        if not set(found) <= self.asked:
            raise Objection("it was never published")
        if not set(found) >= self.confirmed - self.gone:
            raise Objection(f"confirmed, and lost: {self.confirmed - self.gone - set(found)}")
        for each in scheduled:
            if each.deliveries > self.given_back[int(each.body.split(b" ")[0])]:
                raise Objection(f"delivered {each.deliveries} times?")

    def judge_values(self, broker: Broker) -> None:
        rates = broker.queue("rates")
        found = [(str(each.key), int(each.body)) for each in rates.browse()]
        if len(found) != len(dict(found)):
            raise Objection(f"older values are there: {found}")
        for key, (confirmed, asked) in self.values.items():
            number, value = dict(found).get(key), rates.value(key)
            if number != (None if value is None else int(value.body)):
                raise Objection(f"{key} is {number}, and its index says another")
            if number is None and self.taken[key] < confirmed:
                raise Objection(f"{key} is lost, it was {confirmed}, taken {self.taken[key]}")
            if number is not None and not confirmed <= number <= asked:
                raise Objection(f"{key} is {number}, not {confirmed} to {asked}")


def states(
    trace: Path, events: list[Event], seed: int, every: int
) -> Iterator[tuple[str, Folder, Model]]:
    """After each call: as it is after a kill, and now and then as it may be after a power loss."""
    random, storage, model = Random(seed), Storage(), Model(events)
    for number, entry in enumerate(entries(trace)):
        storage.apply(entry)
        if entry.kind == MARKED:
            model.mark(entry.offset)
        yield f"call {number}, killed", storage.after_kill(), model
        for share in SHARES if number % every == 0 else ():
            name = f"call {number}, power loss, {share:.0%} of the rest is left"
            yield name, storage.after_power_loss(random, share), model


def judge(folder: Path, vhost: str, model: Model) -> None:
    vhosts.delete(vhost, force=True)
    vhosts.create(vhost, arena_bytes=ARENA_BYTES)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        restore(broker, folder)
        model.judge(broker)


def check(trace: Path, log: Path, folder: Path, vhost: str, seed: int, every: int) -> str:
    events = [(what, key, number) for what, key, number in json.loads(log.read_text())]
    count, seen = 0, set()
    for name, content, model in states(trace, events, seed, every):
        key = hash((frozenset(content.items()), model.marks))
        if key in seen:
            continue
        seen.add(key)
        count += 1
        write_folder(folder, content)
        try:
            judge(folder, vhost, model)
        except (Objection, Error) as objection:
            return f"{name}: {objection}"
    return f"{count} states are well"


def main() -> None:
    verb, *rest = sys.argv[1:]
    if verb == "record":
        folder, events, vhost, seed, *answer_ms = rest
        record(folder, events, vhost, int(seed), int(answer_ms[0]) / 1e3 if answer_ms else 0)
        print("recorded")  # noqa: T201
    else:
        trace, events, folder, vhost, seed, every = rest
        said = check(Path(trace), Path(events), Path(folder), vhost, int(seed), int(every))
        print(said)  # noqa: T201


if __name__ == "__main__":
    main()
