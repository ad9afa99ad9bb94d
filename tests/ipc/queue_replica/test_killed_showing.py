"""Whoever shows a moment is killed between any two machine instructions: it is there as a whole, or
nothing of it, as soon as somebody comes after it.

The applier, and the journaler beside it, are a process of their own, which is stepped through with
ptrace.  What it shows is of two queues, which get the same messages and lose the same ones.
"""

from __future__ import annotations

import os
import platform
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Unconfirmed
from shmbroker.ipc._native import lib
from shmbroker.ipc.queue_replica.copy import Copies, declare
from shmbroker.ipc.queue_replica.moment import Moment
from shmbroker.ipc.queue_replica.original import Originals
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.tracer import Stepped

STRIDE = int(os.environ.get("SHOWING_STRIDE", "6000"))
"""How many instructions from one stop to the next.  The second one is anywhere, so that many runs
see them all; `make crash` has 200."""
STRIDES = (40 * STRIDE, STRIDE, 40 * STRIDE)
"""While the moment is written down, while it is shown, and while it is forgotten.  The first and
the last are Python, whose many instructions change little in memory that others see."""
NAMES = ("first", "second")
SLOTS = 64
DEPTH, CHANGED = 40, 20
"""Messages in each of both, of which so many are new with each moment, and so many are gone."""
NUDGE_SECONDS = 0.05
"""So long it is waited for a frame that must not be written."""

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="instructions are counted on x86-64"
)
Content = list[list[tuple[Any, ...]]]


def content(broker: Broker) -> Content:
    return [[(each.position, each.body) for each in broker.queue(name).browse()] for name in NAMES]


class Replicas:
    """Of the queues of another vhost: their own, with a journal if they are durable."""

    def __init__(self, there: Broker, folder: Path, vhost: str, *, is_durable: bool) -> None:
        self.there, self.folder, self.vhost = there, folder, vhost
        self.epoch = self.published = 0
        self.is_durable = is_durable
        self.instructions = 0, 0
        """In which phase it was stopped, and after how many."""
        for name in NAMES:
            there.declare_queue(name, slots=SLOTS)
        vhosts.create(vhost, arena_bytes=64 << 20)
        with ExitStack() as opened:
            here = self.served(opened)
            here.declare_queue("other", durable=is_durable)
            for name in NAMES:
                here.declare_queue(name, slots=SLOTS, durable=is_durable)
                declare(here, name, 0, b"what it follows")
            self.changes(DEPTH)
            news = self.news(here)
            with self.copies(here) as copies:
                copies.take(news)
                assert copies.show()
                confirmed(copies)

    def served(self, opened: ExitStack) -> Broker:
        """With a journaler, if it is durable."""
        self.epoch += 1
        if self.is_durable:
            opened.enter_context(journaling(self.vhost, self.folder, self.epoch))
        return opened.enter_context(shmbroker.connect(f"shm://{self.vhost}", name="here"))

    def copies(self, here: Broker) -> Copies:
        made = Copies(here)
        for number, name in enumerate(NAMES):
            made.add(here.queue(name), number, 0)
        return made

    def changes(self, gone: int = CHANGED) -> None:
        for name in NAMES:
            queue = self.there.queue(name)
            for _ in range(gone):
                if gone < DEPTH:
                    queue.get(timeout=0).ack()
                self.published += 1
                queue.publish(b"%d" % self.published)  # never twice: whose memory it is, is seen

    def news(self, here: Broker) -> bytes:
        """All that it lacks."""
        with Originals(self.there, room=1 << 20) as originals:
            for number, name in enumerate(NAMES):
                originals.add(self.there.queue(name), number, here.queue(name).published)
            found = originals.read()
            assert found is not None
            assert found.whole
            return bytes(found.memory)

    def shows(self, news: bytes) -> None:
        """A process of its own, which stops itself before and after."""
        with ExitStack() as opened:
            here = self.served(opened)
            copies = opened.enter_context(self.copies(here))
            confirmed(copies)
            copies.take(news)
            pytest.MonkeyPatch().setattr(Moment, "_shown", between_stops(Moment._shown))
            between_stops(Copies.show)(copies)
            os._exit(0)


def between_stops(does: Callable[..., Any]) -> Callable[..., Any]:
    def stopped(*arguments: Any, **more: Any) -> Any:
        signal.raise_signal(signal.SIGSTOP)
        did = does(*arguments, **more)
        signal.raise_signal(signal.SIGSTOP)
        return did

    return stopped


def confirmed(copies: Copies) -> None:
    until = time.monotonic() + PATIENCE
    while not copies.is_confirmed:
        assert time.monotonic() < until, "what was shown is not on disk"
        time.sleep(0.001)


def stops(replicas: Replicas) -> Iterator[tuple[Stepped, Content, Content]]:
    """With what is there before the moment, and with it."""
    for phase, stride in enumerate(STRIDES):
        yield from stops_in(replicas, phase, stride)


def stops_in(
    replicas: Replicas, phase: int, stride: int
) -> Iterator[tuple[Stepped, Content, Content]]:
    instructions, is_inside, times = 1, True, 0
    while is_inside:
        replicas.changes()
        with shmbroker.connect(f"shm://{replicas.vhost}") as here:
            before, after, news = content(here), content(replicas.there), replicas.news(here)
        assert before != after
        with Stepped(partial(replicas.shows, news)) as showing:
            replicas.epoch += 1
            for _ in range(phase):
                showing.run_to_stop()
            is_inside = showing.step(instructions)
            replicas.instructions = phase, instructions
            yield showing, before, after
        instructions += stride if times else random.randrange(1, stride)
        times += 1
    assert times > 1, "nothing was stepped through"


def is_showing(broker: Broker) -> bool:
    return bool(lib.sb_commit_is_showing(lib.sb_transactions(broker._connection)))


def has_happened(replicas: Replicas, here: Broker, before: Content, after: Content) -> bool:
    found = content(here)
    assert found in (before, after), (replicas.instructions, found)
    return found == after


@pytest.fixture
def name(broker: Broker) -> Iterator[str]:
    with vhost_for_a_while() as made:
        yield made


def test_in_memory_whoever_opens_the_replicas_shows_the_rest(
    broker: Broker, name: str, tmp_path: Path
) -> None:
    replicas = Replicas(broker, tmp_path, name, is_durable=False)
    happened = []
    with shmbroker.connect(f"shm://{name}", name="somebody else") as other:
        for showing, before, after in stops(replicas):
            showing.kill()
            other.repair()
            other.queue("other").publish(bytes(100_000))  # where memory is free by now
            with replicas.copies(other):
                happened.append(has_happened(replicas, other, before, after))
    assert sorted(happened) == happened, "it had happened, and then not"
    assert set(happened) == {True, False}


def test_the_next_journaler_shows_the_rest_and_writes_it_as_a_whole(
    broker: Broker, name: str, tmp_path: Path
) -> None:
    replicas = Replicas(broker, tmp_path, name, is_durable=True)
    happened = []
    for showing, before, after in stops(replicas):
        showing.kill()
        with ExitStack() as opened:
            here = replicas.served(opened)
            here.queue("other").publish(b"it writes again", timeout=PATIENCE)
            happened.append(has_happened(replicas, here, before, after))
        replicas.epoch += 1
        with after_the_host_died(name, tmp_path, replicas.epoch) as here:
            assert has_happened(replicas, here, before, after) == happened[-1]
    assert sorted(happened) == happened, "it had happened, and then not"
    assert set(happened) == {True, False}


def test_the_journaler_beside_it_writes_no_half(broker: Broker, name: str, tmp_path: Path) -> None:
    """It stands still, the journaler has something else to write, and the host dies."""
    replicas = Replicas(broker, tmp_path, name, is_durable=True)
    happened = []
    for showing, before, after in stops(replicas):
        with shmbroker.connect(f"shm://{name}", name="somebody else") as other:
            if is_showing(other):
                with suppress(Unconfirmed):
                    other.queue("other").publish(b"a frame", timeout=NUDGE_SECONDS)
            else:
                other.queue("other").publish(b"a frame", timeout=PATIENCE)
        showing.kill()
        replicas.epoch += 1
        with after_the_host_died(name, tmp_path, replicas.epoch) as here:
            happened.append(has_happened(replicas, here, before, after))
    assert sorted(happened) == happened, "it had happened, and then not"
    assert set(happened) == {True, False}
