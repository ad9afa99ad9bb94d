"""The broker of durable schedules and last values is killed with -9, fifty times, while messages
are scheduled, come due, go back for a while and are replaced; each tenth time its host dies, too.

A plain model says what may be there then: all that was confirmed and not acknowledged, once, in
order; of each key the last value.  What was acknowledged in the last moment may come again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from threading import Timer

import shmbroker
from shmbroker import Broker, Empty, Queue, QueueFull, Unconfirmed
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.killed import KILLS

LIVES = 10
"""Kills of a broker, of which the last one is of the host too."""
KEYS = "abcd"
SLOTS = 512
MOVE_SECONDS = 0.02
"""The broker ends a move that it is in."""
SOON = 1.0
"""What is due later than that is not waited for."""
CONFIRMED_S = 0.05
"""What is not on disk by then is not waited for."""
TOGETHER = 200
"""So many are there at once, or only taking goes on."""


class Jobs:
    """Messages of which each has a number, some of them not to be delivered at once."""

    def __init__(self) -> None:
        self.sent = 0
        self.confirmed: set[int] = set()
        self.acked: set[int] = set()
        self.gone: set[int] = set()
        """They were not there when the host was made anew: never again."""
        self.late: set[int] = set()
        """Not in the order of publishing: scheduled, or given back."""
        self.due: dict[int, float] = {}

    def publish(self, broker: Broker, random: Random, timeout: float = CONFIRMED_S) -> None:
        number, delay = self.sent, random.choice((None, 0.001, 0.003, 0.01, 60.0))
        options = {}
        if delay is not None:
            self.late.add(number)
            self.due[number] = time.time() + delay
            if random.random() < 0.3:
                options["deliver_at"] = self.due[number]
            else:
                options["deliver_after"] = delay
        self.sent += 1
        if random.random() < 0.3:
            with broker.transaction() as tx:
                tx.publish(broker.queue("jobs"), b"%d" % number, **options)  # type: ignore[arg-type]
                tx.commit(timeout=timeout)
        else:
            broker.queue("jobs").publish(b"%d" % number, timeout=timeout, **options)
        self.confirmed.add(number)

    def take(self, broker: Broker, random: Random) -> None:
        for message in broker.queue("jobs").get_many(random.randint(1, 8), timeout=0):
            number = int(message.body)
            assert number not in self.acked | self.gone, f"{number} is there twice"
            assert time.time() >= self.due.get(number, 0) - 0.001, "not before its time"
            if random.random() < 0.6:
                message.ack()
                self.acked.add(number)
            else:
                self.late.add(number)
                message.give_back()

    def _seen(self, jobs: Queue) -> tuple[list[CopiedMessage], list[int]]:
        """What is in the queue, and what is scheduled meanwhile."""
        before, waiting = [-1], [0]
        while before != waiting:  # its broker moves what is due
            before = [int(message.body) for message in jobs.scheduled()]
            messages = list(jobs.browse(unconfirmed=True))
            waiting = [int(message.body) for message in jobs.scheduled()]
        return messages, waiting

    def judge(self, broker: Broker) -> None:
        expected = self.confirmed - self.acked - self.gone
        end, former = time.monotonic() + PATIENCE, [-1]
        while True:  # a move of what is due, if it is half way, is seen in half: so look twice
            messages, waiting = self._seen(broker.queue("jobs"))
            there = [int(message.body) for message in messages]
            found = there + waiting
            is_whole = len(found) == len(set(found)) and set(found) >= expected
            if (is_whole and sorted(found) == former) or time.monotonic() > end:
                break
            former = sorted(found)
            time.sleep(MOVE_SECONDS)  # nothing tells
        assert len(found) == len(set(found)), "it is there twice"
        assert set(found) <= set(range(self.sent)) - self.gone
        assert set(found) >= expected, "confirmed, and lost"
        ordered = [number for number in there if number not in self.late]
        assert ordered == sorted(ordered)
        assert all(each.deliveries for each in messages if int(each.body) not in self.late)
        self.gone = set(range(self.sent)) - set(found)
        self.acked -= set(found)


class Rates:
    """Last values: of each key what was asked for last, and what was confirmed."""

    def __init__(self) -> None:
        self.asked = dict.fromkeys(KEYS, -1)
        self.confirmed = dict.fromkeys(KEYS, -1)
        self.taken = dict.fromkeys(KEYS, -1)

    def publish(self, broker: Broker, random: Random, timeout: float = CONFIRMED_S) -> None:
        key = random.choice(KEYS)
        self.asked[key] += 1
        broker.queue("rates").publish(b"%d" % self.asked[key], key=key, timeout=timeout)
        self.confirmed[key] = self.asked[key]

    def take(self, broker: Broker, random: Random) -> None:
        with broker.queue("rates").get(timeout=0) as message:
            number, key = int(message.body), message.key
            assert self.confirmed[key] <= number <= self.asked[key] or number > self.taken[key]
            if random.random() < 0.3:
                self.taken[key] = number
                message.ack()
            else:
                message.give_back()

    def judge(self, broker: Broker) -> None:
        rates = broker.queue("rates")
        found = [(message.key, int(message.body)) for message in rates.browse(unconfirmed=True)]
        assert len(found) == len(dict(found)), f"older values are there: {found}"
        for key in KEYS:
            number, value = dict(found).get(key), rates.value(key)
            assert number == (None if value is None else int(value.body)), "its index is wrong"
            if number is None:
                assert self.taken[key] >= self.confirmed[key], f"{key}: confirmed, and lost"
                self.confirmed[key] = self.asked[key]
            else:
                assert self.confirmed[key] <= number <= self.asked[key], f"{key}: an older value"
                self.confirmed[key] = number
            self.asked[key] = self.confirmed[key]
            self.taken[key] = self.asked[key] if number is None else -1


def declare(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue(
            "jobs", durable=True, slots=SLOTS, max_deliveries=None, redelivery_delay=0.002
        )
        broker.declare_queue("rates", durable=True, slots=16, last_value=True, max_deliveries=None)


def brokers(vhost: str, journal: Path, errors: Path, died: bool, epoch: int) -> Process:
    """One that runs until it is killed, and is ready."""
    ready, say = os.pipe()
    context: Callable[..., object] = after_the_host_died if died else journaling

    def work() -> int:
        with context(vhost, journal, epoch), shmbroker.connect(f"shm://{vhost}") as repairing:  # type: ignore[attr-defined]
            os.write(say, b"!")
            while True:
                repairing.repair_for(timeout=0.01)

    process = Process(work, errors)
    os.close(say)
    assert os.read(ready, 1), process.errors.read_text()
    os.close(ready)
    return process


def work(vhost: str, stop: float, random: Random, jobs: Jobs, rates: Rates) -> None:
    """Until then, whatever may be confirmed."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        steps = [jobs.take, rates.publish, rates.take, jobs.publish, jobs.publish]
        while time.monotonic() < stop:
            told = broker.queue("jobs").statistics()
            crowded = told.depth + told.scheduled > TOGETHER
            with suppress(Unconfirmed, Empty, QueueFull):
                random.choice(steps[: 3 if crowded else 5])(broker, random)


def begin(vhost: str, random: Random, jobs: Jobs, rates: Rates) -> None:
    """Some of all that `work` does, however slow the disk is."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        jobs.publish(broker, random, PATIENCE)
        rates.publish(broker, random, PATIENCE)
        with suppress(Empty):
            jobs.take(broker, random)


def test_nothing_is_lost_or_twice_whenever_the_broker_is_killed(vhost: str, tmp_path: Path) -> None:
    random, jobs, rates, journal = Random(23), Jobs(), Rates(), tmp_path / "journal"
    declare(vhost)
    for kill in range(KILLS):
        died = bool(kill) and kill % LIVES == 0
        process = brokers(vhost, journal, tmp_path / "errors", died, kill + 1)
        with ExitStack() as stack:
            stack.callback(process.kill)
            if died:
                with shmbroker.connect(f"shm://{vhost}", observe=True) as looking:
                    jobs.judge(looking)
                    rates.judge(looking)
            if kill % 2:
                begin(vhost, random, jobs, rates)
            delay = random.uniform(0, 0.06)
            killer = Timer(delay, process.kill)
            killer.start()
            stack.callback(killer.join)
            work(vhost, time.monotonic() + delay + 0.01, random, jobs, rates)
    process = brokers(vhost, journal, tmp_path / "errors", True, KILLS + 1)
    try:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            jobs.judge(broker)
            rates.judge(broker)
            queue = broker.queue("jobs")
            end = time.time() + PATIENCE
            while queue.statistics().depth or any(
                each.deliver_at.timestamp() < time.time() + SOON for each in queue.scheduled()
            ):
                with suppress(Empty):
                    jobs.take(broker, random)
                assert time.time() < end, "what is due is not delivered"
            jobs.judge(broker)
    finally:
        process.kill()
    assert len(jobs.confirmed) >= KILLS // 2, "they had no time to do anything"
    assert len(jobs.acked) > KILLS // 4
    assert sum(rates.asked.values()) > KILLS // 4
