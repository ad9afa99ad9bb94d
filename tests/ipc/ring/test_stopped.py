"""A program that is stopped between any two machine instructions delays nobody else.

Killed there, it loses nobody else's message; continued later, it corrupts nothing.  This is the
real library in real processes, stepped through with ptrace; the explorer does the same for every
interleaving of the atomics.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker import Ring
from shmbroker.core import layout
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
