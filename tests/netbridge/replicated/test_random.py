"""A pair with a witness under random blows, with programs on other hosts: what was confirmed is
there, and nothing is delivered again without a flag.

REPLICATED_BLOWS=50 strikes so often for each seed, REPLICATED_SEEDS=10 has so many of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.instance import status
from tests.netbridge.replicated.conftest import NAMES, PASSWORD, PATIENCE, Made, Node
from tests.netbridge.replicated.test_witness import guarded
from tests.support.witness import Place

BLOWS = int(os.environ.get("REPLICATED_BLOWS", "5"))
SEEDS = int(os.environ.get("REPLICATED_SEEDS", "1"))
STILL_SECONDS = 2.5
"""Longer than the lease."""


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "witness")
    made.begin()
    yield made
    made.kill()


class Programs:
    """A publisher that waits for each confirm, and a consumer that acknowledges one by one."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.published = 0
        self.confirmed: set[int] = set()
        self.taken: dict[int, int] = {}
        """How often each was delivered without a flag, or for the first time."""
        self.failures: list[str] = []
        self.is_over = threading.Event()
        self._ends_at = 0.0
        self._are_there = threading.Barrier(3)
        """Both are connected before the first blow."""
        self._threads = [
            threading.Thread(target=self._guarded, args=(each,), daemon=True)
            for each in (self._publish, self._consume)
        ]

    def begin(self) -> None:
        with self._connected() as broker:
            broker.declare_queue("orders", durable=True)
        for each in self._threads:
            each.start()
        self._are_there.wait(PATIENCE)

    @property
    def _has_all(self) -> bool:
        """Not before the publisher has ended: it may still be trying its last one."""
        publisher, _ = self._threads
        is_whole = not publisher.is_alive() and self.confirmed <= self.taken.keys()
        return is_whole or time.monotonic() > self._ends_at

    def end(self) -> None:
        self._ends_at = time.monotonic() + PATIENCE
        self.is_over.set()
        for each in self._threads:
            each.join(2 * PATIENCE)
            assert not each.is_alive(), "a program hangs"

    def _connected(self) -> Any:
        return shmbroker.connect(self.uri, user="programs", password=PASSWORD)

    def _guarded(self, step: Callable[[Any], None]) -> None:
        try:
            with self._connected() as broker:
                self._are_there.wait(PATIENCE)
                step(broker.queue("orders"))
        except Exception as error:  # noqa: BLE001 - told by the test
            self.failures.append(repr(error))

    def _publish(self, queue: Any) -> None:
        while not self.is_over.is_set():
            number = self.published
            self.published += 1
            with suppress(shmbroker.Unconfirmed):
                queue.publish(b"%d" % number, timeout=PATIENCE)
                self.confirmed.add(number)

    def _consume(self, queue: Any) -> None:
        while True:
            try:
                message = queue.get(timeout=1)
            except shmbroker.Empty:
                if self.is_over.is_set() and self._has_all:
                    return
                continue
            number, is_again = int(message.body), message.redelivered
            if not (is_again and number in self.taken):
                self.taken[number] = self.taken.get(number, 0) + 1
            with suppress(shmbroker.DeliveryRevoked):  # it comes again, flagged
                message.ack()


class Blows:
    kinds = ("kill live", "kill backup", "stop live", "stop backup", "hand over", "still live")

    def __init__(self, node: Node, seed: int) -> None:
        self.node, self.random = node, Random(seed)
        self.struck: list[str] = []

    def strike(self) -> None:
        live = self.settles()
        other = next(name for name in NAMES if name != live)
        kind = self.random.choice(self.kinds)
        self.struck.append(f"{time.monotonic():.1f} {kind}, {live} is live")
        time.sleep(self.random.random() * 0.3)
        verb, _, whom = kind.partition(" ")
        self.carry_out(verb, live if whom == "live" else other, live)

    def carry_out(self, verb: str, name: str, live: str) -> None:
        if verb == "kill":
            self.node[name].kill()
            time.sleep(self.random.random() * 0.5)
            self.node[name].start()
        elif verb == "stop":
            self.node[name].stop()
            self.node[name].start()
        elif verb == "still":
            self.node.stands_still(name)
            time.sleep(STILL_SECONDS)
            self.node.goes_on(name)
        else:
            self.node.orders(live, {"verb": "handover"})

    def begin_again(self) -> None:
        """Whoever has ended by what was struck, as it may."""

    def settles(self) -> str:
        """Who is live, once the other one is in sync with it."""
        until = time.monotonic() + 2 * PATIENCE
        while time.monotonic() < until:
            self.begin_again()
            found = {name: status.read(self.node[name].folder) for name in NAMES}
            states = sorted(each.state for each in found.values())
            all_in_sync = all(each.replication == "in sync" for each in found.values())
            if states == ["live", "passive"] and all_in_sync:
                return next(name for name in NAMES if found[name].state == "live")
            time.sleep(0.05)
        raise AssertionError(f"{self.struck} {found}\n{self.node.story()}")


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_blow_upon_blow(node: Made, witness: Place, seed: int) -> None:
    settings: dict[str, object] = {"link-defaults.heartbeat-interval": "500ms"}
    joins = {"check_for_live_server": True, "lease": "1.5s"}
    two = guarded(node, witness, settings=settings, **joins).up()
    bear(Programs(two.uri()), Blows(two, seed), seed)


def bear(programs: Programs, blows: Blows, seed: int) -> None:
    programs.begin()
    for _ in range(BLOWS):
        blows.strike()
    blows.settles()
    programs.end()
    said = f"seed {seed}: {blows.struck}"
    assert not programs.failures, (said, programs.failures)
    lost = programs.confirmed - programs.taken.keys()
    assert not lost, (said, sorted(lost))
    twice = {number: times for number, times in programs.taken.items() if times > 1}
    assert not twice, (said, twice)
    assert programs.confirmed, said
