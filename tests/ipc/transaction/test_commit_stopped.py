"""A commit that is killed between any two machine instructions happened, or did not: never half.

The real library in a real process, stepped through with ptrace.  While it stands still, others use
its queues: what it has placed already is taken and its slots are used again, or the queue is filled
up.  Then it is killed and another participant repairs, or it goes on.
"""

from __future__ import annotations

import os
import platform
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import layout
from shmbroker.core.codes import FULL
from shmbroker.ipc.instance.moving import moves, serves
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from tests.support.compiler import NATIVE, compile_program
from tests.support.decided import is_decided
from tests.support.host import PATIENCE, journaling
from tests.support.tracer import Stepped

STRIDE = int(os.environ.get("COMMIT_STRIDE", "5000"))
"""How many instructions from one stop to the next; each stepping starts anew, and takes up to half
a second.  The first stop is anywhere, so that many runs see them all; `make crash` has 500, and 23
sees all in an hour."""

SLOTS = 4

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="instructions are counted on x86-64"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(NATIVE / "committer.c", tmp_path_factory.mktemp("made") / "committer")


def drained(queue: shmbroker.Queue) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(queue.receive(timeout=0))
        except shmbroker.Empty:
            return found


def series_held(vhost: str) -> int:
    """How many series of numbers are in the hands of a transaction."""
    held = 0
    for path in Path("/dev/shm").glob(f"shmbroker.{vhost}.queue-*"):
        ring = path.read_bytes()
        for each in range(layout.PRODUCERS):
            at = layout.RING_PRODUCERS_AT + each * layout.PRODUCER_BYTES
            identity = int.from_bytes(ring[at : at + 8], "little", signed=True)
            held += layout.SERIES_IDLE < identity < 0
    return held


def blocks_owned(vhost: str, owner: int) -> int:
    with Path(f"/dev/shm/shmbroker.{vhost}.arena").open("rb") as file:
        arena = file.read(layout.ARENA_TABLE_AT + 65536)
    blocks = int.from_bytes(arena[layout.ARENA_COMMITTED_AT :][:8], "little")
    assert blocks <= 65536 >> layout.BLOCK_ENTRY_SHIFT
    owned = 0
    for block in range(blocks):
        at = layout.ARENA_TABLE_AT + (block << layout.BLOCK_ENTRY_SHIFT)
        word = int.from_bytes(arena[at : at + 8], "little")
        owned += (word >> layout.BLOCK_OWNER_SHIFT) & layout.OWNER_MASK == owner
    return owned


class Bank:
    """The queues, and what came out of them."""

    def __init__(self, vhost: str) -> None:
        self.vhost = vhost
        self.broker = shmbroker.connect(f"shm://{vhost}")
        self.a = self.broker.declare_queue("a", slots=SLOTS)
        self.b = self.broker.declare_queue("b", slots=SLOTS)
        self.c = self.broker.declare_queue("c", slots=SLOTS)
        self.came: list[bytes] = []
        self.instructions = 0
        """After how many the commit was stopped."""

    def drain(self) -> None:
        self.came += [each for each in drained(self.b) if each != b"other"]

    def use(self) -> None:
        """Take what is visible of it, and use the slots again."""
        self.drain()
        for _ in range(2 * SLOTS + 1):
            self.b.publish(b"other", timeout=0)
            self.drain()

    def fill(self) -> None:
        """Let nobody find room in b any more."""
        try:
            while True:
                self.b.publish(b"other", timeout=0)
        except shmbroker.QueueFull:
            pass

    def verdict(self) -> bool:
        """True: all of it happened; False: nothing did."""
        self.broker.repair()
        self.drain()
        self.broker.repair()  # what had no room before
        self.drain()
        left, other = drained(self.a), drained(self.c)
        found = self.came, other, left
        assert found in (([b"1", b"2"], [b"2"], []), ([], [], [b"coin"])), (
            found,
            self.instructions,
        )
        self.came = []
        assert series_held(self.vhost) == 0
        return not left


@pytest.fixture
def bank(vhost: str) -> Iterator[Bank]:
    made = Bank(vhost)
    with made.broker:
        yield made


def check_every_frame(folder: Path) -> int:
    """At each frame all of each transaction or nothing: how many there are in the end."""
    names: dict[int, str] = {}
    found: dict[str, set[int]] = {"a": set(), "b": set(), "c": set()}
    done: set[int] = set()
    with Replay(folder) as replay:
        for record in replay:
            if record.kind == records.QUEUE:
                length = int.from_bytes(record.body[56:64], "little")
                names[record.queue] = record.body[72 : 72 + length].decode()
            name = names.get(record.queue, "")
            if record.kind == records.MESSAGE and name in found:
                found[name].add(record.position)
            if record.kind == records.RETIRED and name == "a":
                bits = int.from_bytes(record.body, "little")
                above = (bit for bit in range(8 * len(record.body)) if bits >> bit & 1)
                done |= {*range(record.position), *(record.position + bit for bit in above)}
            if record.last:
                counts = len(done & found["a"]), len(found["b"]), len(found["c"])
                assert counts == (counts[0], 2 * counts[0], counts[0])
    return len(found["c"])


def stops(program: Path, bank: Bank) -> Iterator[Stepped]:
    instructions = random.randrange(1, STRIDE)
    while True:
        bank.a.publish(b"coin")
        with Stepped([str(program), bank.vhost]) as commit:
            if not commit.step(instructions):
                assert commit.finish() == 0
                assert bank.verdict()
                assert instructions > 1000, "nothing was stepped through"
                return
            bank.instructions = instructions
            yield commit
        instructions += STRIDE


@pytest.mark.parametrize("meanwhile", ["nothing", "use", "fill"])
def test_a_commit_that_is_killed(program: Path, bank: Bank, meanwhile: str) -> None:
    happened = []
    for commit in stops(program, bank):
        owner = max(each.id for each in bank.broker.participants())
        if meanwhile == "use":
            bank.use()
        if meanwhile == "fill":
            bank.fill()
        commit.kill()
        happened.append(bank.verdict())
        assert len(bank.broker.participants()) == 1
        assert blocks_owned(bank.vhost, owner) == 0
    assert sorted(happened) == happened, "it had happened, and then not"
    assert set(happened) == {True, False}


@pytest.mark.parametrize("meanwhile", ["use", "fill"])
def test_a_commit_that_is_continued(program: Path, bank: Bank, meanwhile: str) -> None:
    """Nobody has waited for it; it ends as if nothing had been, or finds no room in b."""
    for commit in stops(program, bank):
        if meanwhile == "use":
            bank.use()
            assert commit.finish() == 0
        else:
            bank.fill()
            commit.run_to_stop()
            bank.drain()
            assert commit.finish() in (0, -FULL)
        bank.verdict()


def test_one_that_goes_on_when_its_vhost_has_moved(program: Path, bank: Bank) -> None:
    """Its queues are out of reach: what was decided happens when they are back."""
    seen = set()
    for commit in stops(program, bank):
        decided = is_decided(bank.vhost, max(each.id for each in bank.broker.participants()))
        seen.add(decided)
        moves(bank.vhost, "")
        commit.finish()
        serves(bank.vhost)
        assert bank.verdict() or not decided
    assert seen == {True, False}


@pytest.mark.parametrize("ends", ["killed", "continued"])
def test_one_that_stands_still_is_whole_in_the_journal(
    program: Path, vhost: str, tmp_path: Path, ends: str
) -> None:
    """The journaler does the rest of what is committed, and its owner goes on, or is repaired."""
    expected = 0
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queues = {
            name: broker.declare_queue(name, durable=True, slots=1024, max_deliveries=None)
            for name in ("a", "b", "c", "other")
        }
        with journaling(vhost, tmp_path):
            instructions = random.randrange(1, STRIDE)
            while True:
                queues["a"].publish(b"coin", timeout=PATIENCE)
                with Stepped([str(program), vhost]) as commit:
                    stands = commit.step(instructions)
                    queues["other"].publish(b"", timeout=PATIENCE)
                    if ends == "continued" or not stands:
                        assert commit.finish() == 0
                broker.repair()
                expected = queues["c"].statistics().depth
                if not stands:
                    break
                instructions += STRIDE
            queues["other"].publish(b"", timeout=PATIENCE)
    assert expected > 0
    assert check_every_frame(tmp_path) == expected
