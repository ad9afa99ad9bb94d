"""A link between two processes, and kill -9 of either, at random.

Each message is there once, and in order.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Empty, Queue, QueueFull
from tests.conftest import vhost_for_a_while
from tests.crash.test_failover import seed
from tests.support.host import journaling
from tests.support.link import PATIENCE, SOURCE, TARGET, Pair, free_port

ROUNDS = 20
LIFE_SECONDS = 0.15
SIZES = (8, 64, 2000, 100_000)
NUMBER_BYTES = 8


def body(number: int) -> bytes:
    """Its content says which it is, and how long."""
    text = number.to_bytes(NUMBER_BYTES, "little")
    return text * (SIZES[number % 97 % len(SIZES)] // NUMBER_BYTES)


class Load:
    """Publishes at one end, takes at the other, and takes note."""

    def __init__(self, source: Queue, target: Queue, **options: Any) -> None:
        self.options = options
        self.source, self.target = source, target
        self.published = 0
        self.taken: list[bytes] = []

    def run(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(20):
                try:
                    self.source.publish(body(self.published), timeout=0, **self.options)
                except QueueFull:
                    break
                self.published += 1
            self.take(0.001)

    def take(self, timeout: float) -> None:
        try:
            self.taken.append(self.target.receive(timeout=timeout))
            while True:
                self.taken.append(self.target.receive(timeout=0))
        except Empty:
            return

    def finish(self) -> None:
        until = time.monotonic() + PATIENCE
        while len(self.taken) < self.published and time.monotonic() < until:
            self.take(0.05)


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "durable"])
def test_each_message_is_there_once_and_in_order(tmp_path: Path, durable: bool) -> None:
    random = Random(seed())
    with ExitStack() as opened:
        names = [opened.enter_context(vhost_for_a_while()) for _ in range(2)]
        near, far = (
            opened.enter_context(shmbroker.connect(f"shm://{name}", create=True, name="test"))
            for name in names
        )
        if durable:
            for name in names:
                (tmp_path / name).mkdir()
                opened.enter_context(journaling(name, tmp_path / name))
        pair = Pair(*names, free_port(), tmp_path)
        load = Load(
            near.declare_queue(SOURCE, slots=256, durable=durable),
            far.declare_queue(TARGET, slots=128, durable=durable),
            **({"confirm": "shm"} if durable else {}),
        )
        cast = {end: pair.process(end) for end in ("far", "near")}
        try:
            load.run(1)
            for _ in range(ROUNDS):
                load.run(random.random() * LIFE_SECONDS)
                end = random.choice(("far", "near"))
                assert cast[end].kill() == -9, cast[end].errors.read_text()
                cast[end] = pair.process(end)
                if random.random() < 0.5:
                    load.run(LIFE_SECONDS)
            load.finish()
        finally:
            for each in cast.values():
                each.kill()
        assert load.taken == [body(number) for number in range(load.published)]
        assert load.published > ROUNDS
