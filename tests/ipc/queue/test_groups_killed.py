"""Groups while one of two consumers is killed with -9: one hand a group, in order, none lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import Struct

import pytest

import shmbroker
from tests.support.host import PATIENCE
from tests.support.killed import KILLS
from tests.support.victim import Confirm, Victim, dying

MESSAGES = 24
ENTRY = Struct("<cxxxiii")  # what; who, group, number
TAKEN, DONE, KILLED = b"+", b"-", b"!"
VICTIM, SURVIVOR = 1, 2


class Log:
    """What consumers say they have in hand, in the order in which they said so."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC)

    def say(self, what: bytes, who: int = 0, group: int = 0, number: int = 0) -> None:
        os.write(self._file, ENTRY.pack(what, who, group, number))

    def read(self) -> Iterator[tuple[bytes, int, int, int]]:
        told = os.pread(self._file, 1 << 24, 0)
        os.close(self._file)
        return ENTRY.iter_unpack(told)


def consume(queue: shmbroker.Queue, who: int, log: Log, *, lets_go: bool) -> None:
    """Until there is nothing for us."""
    for message in queue.consume(timeout=0):
        group, number = map(int, message.body.split())
        log.say(TAKEN, who, group, number)
        if lets_go and number % 5 == 0:
            queue.let_go()
        log.say(DONE, who, group, number)
        message.ack()


def check(log: Log, groups: int) -> None:
    holder: dict[int, int] = {}
    numbers: dict[int, list[int]] = {group: [] for group in range(groups)}
    is_dead = False
    for what, who, group, number in log.read():
        if what == KILLED:
            is_dead = True
        elif what == TAKEN:
            former = holder.get(group, who)
            assert former == who or (is_dead and former == VICTIM), (group, number)
            holder[group] = who
            numbers[group].append(number)
        else:
            holder.pop(group, None)
    for group, taken in numbers.items():
        assert taken == sorted(taken), group  # what was in the hand of the dead comes again
        assert sorted(set(taken)) == list(range(group, MESSAGES, groups)), group


def test_an_exclusive_consumer_follows_one_that_was_killed(vhost: str, tmp_path: Path) -> None:
    """At once: nobody has repaired that yet."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("q", single_active=True).publish_many([b"1", b"2"])
        held = broker.declare_queue("held")

        def hold(theirs: shmbroker.Broker, confirm: Confirm) -> None:
            for message in theirs.queue("q").consume(exclusive=True):
                theirs.queue("held").publish(message.body)
                signal.pause()

        victim = Victim(vhost, hold, tmp_path / "errors")
        assert held.receive(timeout=PATIENCE) == b"1"
        alone = broker.queue("q").consume(exclusive=True, timeout=0)
        with pytest.raises(shmbroker.InUse):
            next(alone)
        victim.kill()
        alone = broker.queue("q").consume(exclusive=True, timeout=0)
        assert [(each.body, each.redelivered) for each in alone] == [(b"1", True), (b"2", False)]


@pytest.mark.parametrize("kind", ["groups", "rebalanced", "single"])
def test_a_group_is_in_one_hand_and_in_order_whoever_is_killed(
    vhost: str, tmp_path: Path, kind: str
) -> None:
    random = Random(11)
    groups = 1 if kind == "single" else 3
    kinds: dict[str, dict[str, bool]] = {
        "groups": {"groups": True},
        "rebalanced": {"groups": True, "rebalance": True},
        "single": {"single_active": True},
    }
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=64, max_deliveries=None, **kinds[kind])
        for _ in range(KILLS):
            log = Log(tmp_path / "log")
            for number in range(MESSAGES):
                group = number % groups
                queue.publish(f"{group} {number}".encode(), group=f"g{group}")
            over = threading.Event()

            def work(theirs: shmbroker.Broker, confirm: Confirm, log: Log = log) -> None:
                while True:
                    consume(theirs.queue("q"), VICTIM, log, lets_go=True)

            def survive(log: Log = log, over: threading.Event = over) -> None:
                while not over.is_set():
                    consume(queue, SURVIVOR, log, lets_go=False)

            with dying(vhost, work, tmp_path, random):
                survivor = threading.Thread(target=survive)
                survivor.start()
            log.say(KILLED)
            over.set()
            survivor.join()
            broker.repair()
            consume(queue, SURVIVOR, log, lets_go=False)
            check(log, groups)
            assert queue.statistics().depth == 0
