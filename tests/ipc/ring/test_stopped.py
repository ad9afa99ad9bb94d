"""A program that is stopped between any two machine instructions delays nobody else.

Killed there, it loses nobody else's message; continued later, it corrupts nothing.  This is the
real library in real processes, stepped through with ptrace; the explorer does the same for every
interleaving of the atomics.
"""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shmbroker import Ring
from shmbroker.core import layout
from shmbroker.ipc._native import lib
from shmbroker.ipc.ring.port import Port
from tests.support.compiler import NATIVE, compile_program
from tests.support.tracer import Stepped

STEPPED, SURVIVOR, OTHER = 9, 1, 2
STRIDE = {"publish": 1, "consume": 2, "cold-publish": 11}
"""How many instructions from one stop to the next: stepping starts anew for each.  A producer
without blocks first searches the arena."""

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="instructions are counted on x86-64"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("stepped") / "stepped"
    return compile_program(NATIVE / "stepped.c", target, internals=True)


def blocks_owned_by(name: str, owner: int) -> int:
    """How many blocks of the arena still name this owner."""
    arena = Path(f"/dev/shm/{name}.arena").read_bytes()
    blocks = int.from_bytes(arena[layout.ARENA_BLOCKS_AT :][:8], "little")
    owned = 0
    for block in range(blocks):
        at = layout.ARENA_TABLE_AT + (block << layout.BLOCK_ENTRY_SHIFT)
        word = int.from_bytes(arena[at : at + 8], "little")
        owned += (word >> layout.BLOCK_OWNER_SHIFT) & layout.OWNER_MASK == owner
    return owned


def stops(program: Path, action: str, fate: str, name: str) -> Iterator[tuple[Ring, Stepped]]:
    """A ring and a program that is stopped on it, one instruction further each time."""
    instructions = 1 if fate == "killed" else 2
    while True:
        with Ring.create(name, slots=4, arena_bytes=256 << 10) as ring:
            if action == "consume":
                ring.port(SURVIVOR).publish(b"first")
            with Stepped([str(program), name, str(STEPPED), action]) as stepped:
                if not stepped.step(instructions):
                    assert stepped.finish() == 0
                    assert instructions > 100, "nothing was stepped through"
                    return
                yield ring, stepped
        Ring.remove(name)
        instructions += STRIDE[action]


@pytest.mark.parametrize("fate", ["killed", "continued"])
@pytest.mark.parametrize("action", ["publish", "cold-publish"])
def test_a_stopped_producer(program: Path, action: str, fate: str, ring_name: str) -> None:
    for ring, stepped in stops(program, action, fate, ring_name):
        producer, consumer = ring.port(SURVIVOR), ring.port(OTHER)
        received = []
        for index in range(10):  # two laps and a half: nobody waits for the one that is stopped
            producer.publish(b"%d" % index, spins=0)
            while (body := consumer.receive(spins=0)) is not None:
                received.append(body)
        assert [body for body in received if body != b"stepped!"] == [b"%d" % i for i in range(10)]
        if fate == "continued":
            assert stepped.finish() == 0
        else:
            stepped.kill()
        consumer.repair(alive=[SURVIVOR, OTHER])
        while (body := consumer.receive(spins=0)) is not None:
            received.append(body)
        assert received.count(b"stepped!") in ([0, 1] if fate == "killed" else [1])
        for index in range(10):
            producer.publish(b"%d" % index, spins=0)
            assert consumer.receive(spins=0) == b"%d" % index
        consumer.repair(alive=[SURVIVOR, OTHER])
        assert blocks_owned_by(ring.name, STEPPED) == 0


@pytest.mark.parametrize("fate", ["killed", "continued"])
def test_a_stopped_consumer(program: Path, fate: str, ring_name: str) -> None:
    for ring, stepped in stops(program, "consume", fate, ring_name):
        producer, consumer = ring.port(SURVIVOR), ring.port(OTHER)
        received = []
        producer.publish_many([b"a", b"b", b"c"])
        while (message := consumer.try_take(spins=0)) is not None:
            received.append(message.body)
            message.ack()
        assert received in ([b"first", b"a", b"b", b"c"], [b"a", b"b", b"c"])
        if fate == "continued":
            code = stepped.finish()
            assert code in (0, 1)  # 1: there was nothing left to take
            taken = int(code == 0)
        else:
            stepped.kill()
            taken = 0
        consumer.repair(alive=[SURVIVOR, OTHER])
        while (message := consumer.try_take(spins=0)) is not None:
            assert (message.body, message.deliveries) == (b"first", 1)
            received.append(message.body)
            message.ack()
        if fate == "continued":
            assert received.count(b"first") + taken == 1
        for index in range(10):
            producer.publish(b"%d" % index, spins=0)
            assert consumer.receive(spins=0) == b"%d" % index


def is_leased(port: Port, position: int) -> bool:
    word: int = lib.sb_port_word_of(port._port, position)
    return word >> layout.STATE_SHIFT & layout.STATE_MASK == layout.LEASED


def receive_many_between_stops(name: str, told: int) -> None:
    with Ring.attach(name) as ring:
        port = ring.port(STEPPED)
        assert port.receive_many(spins=0) == []  # not to step through what is done once
        signal.raise_signal(signal.SIGSTOP)
        bodies = port.receive_many(spins=0)
        os.write(told, b" ".join(bodies))
    os._exit(0)


@pytest.mark.parametrize("revoked", [1, 3])
def test_of_many_one_that_somebody_else_has_by_now_is_left_out(
    ring_name: str, revoked: int
) -> None:
    """So many are revoked, while who receives them has them in hand."""
    hear, tell = os.pipe()
    with Ring.create(ring_name, slots=4, arena_bytes=256 << 10) as ring:
        producer, other = ring.port(SURVIVOR), ring.port(OTHER)
        with Stepped(partial(receive_many_between_stops, ring_name, tell)) as stepped:
            producer.publish_many([b"a", b"b", b"c"])
            while not is_leased(other, revoked - 1):
                assert stepped.step(5)
            assert not is_leased(other, revoked)
            assert other.repair(alive=[SURVIVOR, OTHER]) > 0
            taken = [other.receive(spins=0) for _ in range(revoked)]
            assert taken == [b"a", b"b", b"c"][:revoked]
            producer.publish(b"d")
            assert stepped.finish() == 0
            left = {1: b"b c d", 3: b"d"}
            assert os.read(hear, 100) == left[revoked]
        assert other.receive(spins=0) is None
    os.close(hear)
    os.close(tell)
