"""python -m shmbroker.perf.micro.link: a link between two brokers, against its bare carrier.

    bare     DEALER ═══ CURVE, loopback TCP ═══ ROUTER              frames of 256 KiB; 64 B and back
    stream   queue ──► follower ══ link ══ sink ──► queue           bodies of 64 B, 1 KiB, 64 KiB
    request  client ──► queue ══ link ══ queue ──► server           64 B; each client in shared
                ▲                                     │             memory with its own broker
                └────── queue ══ link ══ queue ◄──────┘
    publish  program ══ link of a session ══ queue                  64 B, confirmed: in memory

The near half is on one processor, the far half on another.  Rounds of all kinds are interleaved,
ratios are of the medians.  Streams are published before the link is made: counted is what arrives,
from the first message to the last.  What arrives is compared with what was published.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median
from time import perf_counter
from typing import Any

import zmq

from shmbroker import Queue, connect
from shmbroker.netbridge.carrier.authenticator import DOMAIN, Authenticator
from shmbroker.netbridge.carrier.socket import dealer, router
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.curve import new_pair, public_of
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.linked import PASSWORD, USER, End, credential, two_ends
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.port import free_port

FRAME_BYTES = 256 << 10
FRAMES = 512
MESSAGES = {64: 1 << 19, 1024: 1 << 16, 64 << 10: 1 << 10}
"""By the size of the bodies: so many are sent in a round."""
SHARES = {64: 0.0, 1024: 0.6, 64 << 10: 0.8}
"""Of the bare carrier's bytes a second."""
RATE_MIN = 2_500_000
"""Of bodies of 64 bytes."""
TRIP_RATIO_MAX = 2.5
PUBLISH_RATIO_MAX = 1.4
PUBLISHED = "published"
TRIPS = 1_000
ROUNDS = 7
ARENA_BYTES = 1 << 30
PATIENCE_S = 60
BODY = bytes(64)
TIMES = LinkTimes()
WIDE = LinkTimes(window_size=8 << 20, window_messages=-1)
"""The default window has 1,000 messages: of 64 bytes that is not much."""
END = b"end"


# --- bare -----------------------------------------------------------------------------------------


class Bare:
    """The far end, in a process of its own, echoes what is short and counts what is long."""

    def __init__(self) -> None:
        self.port = self.reached_at = free_port()
        self._key = credential().keys[0].listening

    def serve(self) -> None:
        pin(1)
        context: zmq.Context[Any] = zmq.Context()
        authenticator = Authenticator(context)
        address = f"tcp://127.0.0.1:{self.port}"
        socket = router(context, TIMES, address, self._key, DOMAIN)
        socket.bind(address)
        poller = zmq.Poller()
        poller.register(authenticator.socket)
        poller.register(socket)
        while True:
            for ready, _ in poller.poll():
                if ready is authenticator.socket:
                    authenticator.readable()
                    continue
                with suppress(zmq.Again):
                    while True:
                        peer, body = socket.recv_multipart(zmq.NOBLOCK, copy=False)
                        if len(body) < FRAME_BYTES:
                            socket.send_multipart([peer, body], copy=False)
                        if bytes(body) == END:
                            socket.close(linger=1000)
                            authenticator.close()
                            context.term()
                            return

    def begin(self) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        address = f"tcp://127.0.0.1:{self.reached_at}"
        # the other process may not listen yet
        self._socket = dealer(self._context, TIMES, address, new_pair(), public_of(self._key))
        self._socket.setsockopt(zmq.RECONNECT_IVL, 10)
        self._socket.connect(address)
        self.trip()

    def trip(self, body: bytes = BODY) -> None:
        self._socket.send(body)
        assert self._socket.recv() == body

    def stream(self) -> float:
        """Bytes a second."""
        frame = bytes(FRAME_BYTES)
        began = perf_counter()
        for _ in range(FRAMES):
            self._socket.send(frame, copy=False)
        self.trip()
        return FRAMES * FRAME_BYTES / (perf_counter() - began)

    def end(self) -> None:
        self.trip(END)
        self._socket.close()
        self._context.term()


def trip_s(trip: Callable[[], None], trips: int) -> float:
    spent = []
    for _ in range(trips):
        before = perf_counter()
        trip()
        spent.append(perf_counter() - before)
    return median(spent)


# --- links ----------------------------------------------------------------------------------------


def numbered(count: int, size: int) -> list[bytes]:
    return [number.to_bytes(8, "little") * (size // 8) for number in range(count)]


def received(queue: Queue, count: int) -> list[bytes]:
    got: list[bytes] = []
    while len(got) < count:
        got += queue.receive_many(count - len(got), timeout=PATIENCE_S)
    return got


def stream(near: End, far: End, size: int) -> float:
    """Messages a second, of one round; the far end's process is there."""
    count, name = MESSAGES[size], f"stream-{size}"
    with connect(f"shm://{near.vhost}") as here, connect(f"shm://{far.vhost}") as there:
        source = here.declare_queue(name, slots=count)
        target = there.declare_queue(name, slots=count)
        bodies = numbered(count, size)
        source.publish_many(bodies, timeout=PATIENCE_S)
        first = target.published
        process = near.process()
        try:
            while target.published == first:
                time.sleep(0.0002)
            began, early = perf_counter(), target.published
            while (reached := target.published) < first + count:
                time.sleep(0.0005)
            rate = (reached - early) / (perf_counter() - began)
            while len(source) > 0:  # the next round finds it as this one did
                time.sleep(0.001)
        finally:
            process.kill()
        assert received(target, count) == bodies, "what arrived is not what was published"
    return rate


def serve(far: End) -> None:
    """Of requests: until one says that it is the last."""
    pin(1)
    with connect(f"shm://{far.vhost}") as broker:
        asked, answers = broker.queue("asked"), broker.queue("answers")
        while True:
            with asked.get(timeout=PATIENCE_S) as message:
                answers.publish(message.body)
                if message.body == END:
                    return


class Requests:
    """A client and a server, and both their brokers, for as long as they are measured."""

    def __init__(self, near: End, far: End) -> None:
        self._broker = connect(f"shm://{near.vhost}")
        self._asked = self._broker.declare_queue("asked")
        self._answers = self._broker.declare_queue("answers")
        with connect(f"shm://{far.vhost}") as broker:
            broker.declare_queue("asked")
            broker.declare_queue("answers")

    def trip(self, body: bytes = BODY) -> None:
        self._asked.publish(body)
        with self._answers.get(timeout=PATIENCE_S) as message:
            assert message.body == body

    def close(self) -> None:
        self.trip(END)
        self._broker.close()


class Publishing:
    """A program over TCP, which waits for each confirm; the queue is emptied in between."""

    def __init__(self, far: End) -> None:
        self._there = connect(f"shm://{far.vhost}")
        self._target = self._there.declare_queue(PUBLISHED, slots=1 << 16)
        self._far, self._published = far, 0

    def begin(self) -> None:
        """Its broker is there."""
        uri = f"tcp://127.0.0.1:{self._far.port}"
        self._broker: Any = connect(uri, user=USER, password=PASSWORD)
        self._queue = self._broker.queue(PUBLISHED)
        self.trip()

    def trip(self) -> None:
        self._queue.publish(BODY, confirm="shm")
        self._published += 1

    def empty(self) -> None:
        assert self._target.purge() == self._published, "what arrived is not what was published"
        self._published = 0

    def close(self) -> None:
        self._broker.close()
        self._there.close()


# --- all ------------------------------------------------------------------------------------------


def measure_trips(rounds: int, trips: int) -> tuple[float, float, float]:
    """Seconds: bare, through two queues, and of a publish from afar."""
    bare = Bare()
    costs: tuple[list[float], list[float], list[float]] = ([], [], [])
    forth, back = (Shipped("asked", "asked"),), (Shipped("answers", "answers"),)
    with two_ends(forth, back=(back,), arena_bytes=ARENA_BYTES) as (near, far):
        requests, publishing = Requests(near, far), Publishing(far)
        processes = [near.process(), far.process()]
        try:
            near.when("up")
            far.when("up")
            with child(bare.serve), child(lambda: serve(far)):
                pin(0)
                bare.begin()
                publishing.begin()
                for _ in range(rounds):
                    costs[0].append(trip_s(bare.trip, trips))
                    costs[1].append(trip_s(requests.trip, trips))
                    costs[2].append(trip_s(publishing.trip, trips))
                    publishing.empty()
                publishing.close()
                requests.close()
                bare.end()
        finally:
            for process in processes:
                process.kill()
    return median(costs[0]), median(costs[1]), median(costs[2])


def measure_streams(rounds: int, times: LinkTimes) -> tuple[float, dict[int, float]]:
    """Bytes a second of the bare carrier, messages a second by size."""
    bare, carried = Bare(), []
    rates: dict[int, list[float]] = {size: [] for size in MESSAGES}
    ships = tuple(Shipped(f"stream-{size}", f"stream-{size}") for size in MESSAGES)
    with two_ends(ships, arena_bytes=ARENA_BYTES, times=times) as (near, far):
        for end in (near, far):
            with connect(f"shm://{end.vhost}") as broker:
                for size, count in MESSAGES.items():
                    broker.declare_queue(f"stream-{size}", slots=count)
        process = far.process()
        try:
            with child(bare.serve):
                pin(0)
                bare.begin()
                for _ in range(rounds):
                    carried.append(bare.stream())
                    for size, found in rates.items():
                        found.append(stream(near, far, size))
                bare.end()
        finally:
            process.kill()
    return median(carried), {size: median(found) for size, found in rates.items()}


def told(rounds: int, trips: int, times: LinkTimes) -> bool:
    """All of it, in words: whether it is as fast as it is to be."""
    say = sys.stdout.write
    bare, request, publish = measure_trips(rounds, trips)
    good = True
    say(f"round trip, bare carrier      {bare * 1e6:8,.0f} us\n")
    for name, cost, most in (
        ("round trip, through queues ", request, TRIP_RATIO_MAX),
        ("publish, confirmed (shm)   ", publish, PUBLISH_RATIO_MAX),
    ):
        missed = cost > most * bare
        say(f"{name}   {cost * 1e6:8,.0f} us  {cost / bare:5.2f} x"
            f"{f'  MISSED: more than {most} x' if missed else ''}\n")  # fmt: skip
        good &= not missed
    carried, rates = measure_streams(rounds, times)
    say(f"stream, bare carrier, 256 KiB {carried / 1e6:8,.0f} MB/s\n")
    for size, rate in rates.items():
        share = rate * size / carried
        missed = share < SHARES[size] or (size == 64 and rate < RATE_MIN)
        say(f"stream, {size:6,} bytes          {rate * size / 1e6:8,.0f} MB/s  {share:4.0%},"
            f" {rate / 1e6:6.3f} million/s{'  MISSED' if missed else ''}\n")  # fmt: skip
        good &= not missed
    return good


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.micro.link",
        description="A link between two brokers, against its bare carrier.",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--trips", type=int, default=TRIPS, help=f"of a round, default {TRIPS}")
    parser.add_argument("--default-window", action="store_true", help="1,000 messages, 1 MiB")
    asked = parser.parse_args(arguments)
    return 0 if told(asked.rounds, asked.trips, TIMES if asked.default_window else WIDE) else 1


if __name__ == "__main__":
    sys.exit(main())
