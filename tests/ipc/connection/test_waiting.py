"""Who waits sleeps, and is woken when there is something to do, not after a slice of 100 ms.

Times are compared as medians of many, because this host is busy with others.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import operator
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

import shmbroker

SOON = 0.05
"""Half of the slice after which a sleeper looks by itself."""
ROUNDS = 15


@contextmanager
def several(count: int, call: Callable[[], Any]) -> Iterator[list[Future[tuple[Any, float]]]]:
    """Threads that are asleep in a call; each future tells the answer and when it came."""

    def run() -> tuple[Any, float]:
        threads.append(threading.get_native_id())
        try:
            return call(), time.monotonic()
        except shmbroker.Error as error:
            return error, time.monotonic()

    threads: list[int] = []
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(run) for _ in range(count)]
        deadline = time.monotonic() + 10
        while len(threads) < count or not all(is_asleep(thread) for thread in threads):
            assert time.monotonic() < deadline, "nobody fell asleep"
            time.sleep(0.001)
        yield futures


def ack_first(messages: Iterator[shmbroker.Message]) -> None:
    next(messages).ack()


def is_asleep(thread: int) -> bool:
    try:
        with open(f"/proc/self/task/{thread}/wchan") as file:  # noqa: PTH123
            waiting = file.read()
        with open(f"/proc/self/task/{thread}/stat") as file:  # noqa: PTH123
            state = file.read().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state == "S" and ("futex" in waiting or waiting in ("0", ""))


def test_a_blocked_publisher_is_woken_by_an_ack(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    queue = broker.declare_queue("q", slots=2)
    taking = other.queue("q")
    queue.publish_many([b"1", b"2"])
    took = []
    for _ in range(ROUNDS):
        with several(1, lambda: queue.publish(b"3")) as (waiting,):
            message = taking.get(timeout=0)
            start = time.monotonic()
            message.ack()
            position, at = waiting.result(5)
            assert position >= 2
            took.append(at - start)
    assert statistics.median(took) < SOON


@pytest.mark.parametrize("how", ["get", "get_many", "receive", "receive_many", "consume"])
def test_a_blocked_consumer_is_woken_by_a_message(
    broker: shmbroker.Broker, other: shmbroker.Broker, how: str
) -> None:
    queue = broker.declare_queue("q", slots=64)
    calls: dict[str, Callable[[], Any]] = {
        "get": lambda: queue.get().ack(),
        "get_many": lambda: [each.ack() for each in queue.get_many(5)],
        "receive": queue.receive,
        "receive_many": queue.receive_many,
        "consume": lambda: ack_first(queue.consume()),
    }
    took = []
    for _ in range(ROUNDS):
        with several(1, calls[how]) as (waiting,):
            start = time.monotonic()
            other.queue("q").publish(b"1")
            took.append(waiting.result(5)[1] - start)
    assert statistics.median(took) < SOON


@pytest.mark.parametrize("batch", [False, True])
def test_several_blocked_consumers_wake_each_at_once(
    broker: shmbroker.Broker, other: shmbroker.Broker, batch: bool
) -> None:
    queue, giving = broker.declare_queue("q", slots=64), other.queue("q")
    took = []
    for _ in range(ROUNDS):
        with several(4, queue.receive) as waiting:
            start = time.monotonic()
            if batch:
                giving.publish_many([b"1", b"2", b"3", b"4"])
            else:
                for index in range(4):
                    giving.publish(b"%d" % (index + 1))
            answers = [each.result(5) for each in waiting]
            assert sorted(body for body, _ in answers) == [b"1", b"2", b"3", b"4"]
            took.append(max(at for _, at in answers) - start)
    assert statistics.median(took) < SOON


def test_all_subscribers_wake_at_once(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    broker.declare_queue("q", slots=64)
    took = []
    subscriptions = [broker.subscribe("q", lossy=lossy) for lossy in (False, False, True)]
    for index in range(ROUNDS):
        left = list(subscriptions)
        with several(3, lambda: left.pop().get().body) as waiting:  # noqa: B023
            start = time.monotonic()
            other.queue("q").publish(b"%d" % index)
            answers = [each.result(5) for each in waiting]
            assert [body for body, _ in answers] == [b"%d" % index] * 3
            took.append(max(at for _, at in answers) - start)
        other.queue("q").receive(timeout=0)
    assert statistics.median(took) < SOON


def test_a_subscriber_that_goes_on_wakes_a_publisher(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    queue = broker.declare_queue("q", slots=4)
    subscription = other.subscribe("q")
    queue.publish_many([b"1", b"2", b"3", b"4"])
    queue.receive_many()
    subscription.get(timeout=0)
    took = []
    for _ in range(ROUNDS):
        with several(1, lambda: queue.publish(b"5")) as (waiting,):
            start = time.monotonic()
            subscription.get(timeout=0)  # only now are we done with the one before
            took.append(waiting.result(5)[1] - start)
        queue.receive(timeout=0)
    assert statistics.median(took) < SOON


def test_closing_a_subscription_wakes_a_publisher(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    queue = broker.declare_queue("q", slots=4)
    took = []
    for _ in range(ROUNDS):
        subscription = other.subscribe("q")
        queue.publish_many([b"1", b"2", b"3", b"4"])
        queue.receive_many()
        with several(1, lambda: queue.publish(b"5")) as (waiting,):
            start = time.monotonic()
            subscription.close()
            took.append(waiting.result(5)[1] - start)
        queue.receive()
    assert statistics.median(took) < SOON


def test_resuming_wakes_consumers(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    took = []
    for _ in range(ROUNDS):
        queue.pause()
        queue.publish_many([b"1", b"2"])
        with several(2, queue.receive) as waiting:
            start = time.monotonic()
            other.queue("q").resume()
            answers = [each.result(5) for each in waiting]
            took.append(max(at for _, at in answers) - start)
    assert statistics.median(took) < SOON


def test_purging_and_giving_back_wake(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=2)
    took = []
    for _ in range(ROUNDS):
        queue.publish_many([b"1", b"2"])
        with several(1, lambda: queue.publish(b"3")) as (waiting,):
            start = time.monotonic()
            other.queue("q").purge()
            took.append(waiting.result(5)[1] - start)
        message = other.queue("q").get(timeout=0)
        with several(1, queue.receive) as (waiting,):
            start = time.monotonic()
            message.give_back()
            answer, at = waiting.result(5)
            assert answer == b"3"
            took.append(at - start)
    assert statistics.median(took) < SOON


BLOCKED: dict[str, Callable[[shmbroker.Broker], object]] = {
    "get": lambda broker: broker.queue("q").get(),
    "get_many": lambda broker: broker.queue("q").get_many(3),
    "receive": lambda broker: broker.queue("q").receive(),
    "receive_many": lambda broker: broker.queue("q").receive_many(),
    "consume": lambda broker: list(broker.queue("q").consume()),
    "publish": lambda broker: broker.queue("full").publish(b"x"),
    "publish_many": lambda broker: broker.queue("full").publish_many([b"x"]),
    "exchange": lambda broker: broker.exchange("").publish(b"x", key="full"),
    "loan": lambda broker: broker.queue("full").loan(5).publish(),
    "subscribe": lambda broker: broker.subscribe("q").get(),
}


def fill(broker: shmbroker.Broker) -> None:
    broker.declare_queue("q")
    broker.declare_queue("full", slots=2).publish_many([b"1", b"2"])


@pytest.mark.parametrize("how", BLOCKED)
def test_closing_wakes_who_is_blocked(broker: shmbroker.Broker, how: str) -> None:
    fill(broker)
    with several(2, lambda: BLOCKED[how](broker)) as waiting:
        start = time.monotonic()
        broker.close()
        assert time.monotonic() - start < 2
        for each in waiting:
            error, at = each.result(5)
            assert isinstance(error, shmbroker.ConnectionClosed), error
            assert at - start < 2


@pytest.mark.parametrize("deleter", ["the same", "another"])
@pytest.mark.parametrize("how", BLOCKED)
def test_deleting_the_queue_wakes_who_is_blocked(
    broker: shmbroker.Broker, other: shmbroker.Broker, how: str, deleter: str
) -> None:
    fill(broker)
    with several(2, lambda: BLOCKED[how](broker)) as waiting:
        start = time.monotonic()
        for name in ("q", "full"):
            (broker if deleter == "the same" else other).delete_queue(name, force=True)
        for each in waiting:
            answer, at = each.result(5)
            if how == "exchange":  # the queue is gone: nobody takes the message any more
                assert answer in (0, 1)
            else:
                assert isinstance(answer, shmbroker.NotFound), answer
            assert at - start < 2


def test_a_timeout_is_kept(broker: shmbroker.Broker) -> None:
    fill(broker)
    subscription = broker.subscribe("q")
    calls: list[Callable[[], object]] = [
        lambda: broker.queue("q").get(timeout=0.25),
        lambda: broker.queue("q").receive_many(timeout=0.25),
        lambda: broker.queue("full").publish(b"", timeout=0.25),
        lambda: subscription.get(timeout=0.25),
    ]
    for call in calls:
        start = time.monotonic()
        with pytest.raises((shmbroker.Empty, shmbroker.QueueFull)):
            call()
        assert 0.25 <= time.monotonic() - start < 2


IDLE = """
import os, resource, sys, threading
import shmbroker
with shmbroker.connect(sys.argv[1]) as broker:
    calls = {"get": lambda: broker.queue("q").get(),
             "subscribe": lambda: broker.subscribe("q").get(),
             "publish": lambda: broker.queue("full").publish(b"")}
    def call():
        try: calls[sys.argv[2]]()
        except shmbroker.ConnectionClosed: pass
    thread = threading.Thread(target=call)
    thread.start()
    print("ready", flush=True)
    def used():
        of = resource.getrusage(resource.RUSAGE_SELF)
        return of.ru_utime + of.ru_stime, of.ru_nvcsw
    sys.stdin.readline(); seconds, sleeps = used()
    sys.stdin.readline(); now = used(); print(now[0] - seconds, now[1] - sleeps, flush=True)
    broker.close()
    thread.join()
"""


SLEEPS_MAX = 150
"""In a second.  Who waits for a message looks around ten times, for what the dead have left, and
who waits for room seventy times."""


def test_who_waits_uses_no_processor(vhost: str, broker: shmbroker.Broker) -> None:
    fill(broker)
    children = {
        how: subprocess.Popen(
            [sys.executable, "-c", IDLE, f"shm://{vhost}", how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for how in ("get", "subscribe", "publish")
    }
    try:
        for child in children.values():
            assert child.stdout is not None
            assert child.stdin is not None
            assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)  # they fall asleep
        for child in children.values():
            child.stdin.write("\n")
            child.stdin.flush()
        time.sleep(3)  # what is measured is what they use in this time
        for how, child in children.items():
            child.stdin.write("\n")
            child.stdin.flush()
            used, sleeps = map(float, child.stdout.readline().split())
            # what a wake-up costs is the machine's: on a busy one, several times as much
            assert sleeps < SLEEPS_MAX * 3, f"{how} slept {sleeps:.0f} times in 3 s"
            assert used < 0.1 * 3, f"{how} used {used} s of 3 s: it does not sleep"
    finally:
        for child in children.values():
            child.communicate(timeout=10)
    assert all(child.returncode == 0 for child in children.values())


# --- Ctrl-C -------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys
import shmbroker
broker = shmbroker.connect(sys.argv[1])
queue, how = broker.queue("q"), sys.argv[2]
seen = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND)
working = False
def interrupt(*_):
    global working
    if working:  # else the program itself would end, between two tries
        working = False
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)
print("ready", flush=True)
while True:
    try:
        working = True
        if how == "get":
            while True:
                with queue.get() as message:
                    os.write(seen, message.body + b"\\n")
        elif how == "consume":
            for message in queue.consume(prefetch=3):
                os.write(seen, message.body + b"\\n")
                message.ack()
        elif how == "get_many":
            while True:
                for message in queue.get_many(5):
                    os.write(seen, message.body + b"\\n")
                    message.ack()
                del message
    except KeyboardInterrupt:
        pass
    message = None
    if queue.statistics().taken:  # all that it held must have come back by now
        print("held", queue.statistics().taken, flush=True)
"""


@pytest.mark.parametrize("how", ["get", "consume", "get_many"])
def test_ctrl_c_at_any_moment_loses_no_message(
    vhost: str, broker: shmbroker.Broker, how: str, tmp_path: Any
) -> None:
    """A consumer is interrupted some hundred times while messages flow, and goes on each time."""
    count = 3000
    queue = broker.declare_queue("q", slots=64)
    log = tmp_path / "seen"
    log.touch()
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, f"shm://{vhost}", how, str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        sent = 0
        while sent < count:
            sent += queue.publish_many([b"%d" % (sent + index) for index in range(7)], timeout=10)
            child.send_signal(signal.SIGINT)
            assert child.poll() is None, child.communicate()[1]
        deadline = time.monotonic() + 20
        while queue.statistics().depth and time.monotonic() < deadline:
            child.send_signal(signal.SIGINT)
            time.sleep(0.01)
        assert queue.statistics().depth == 0
    finally:
        child.kill()
        output, errors = child.communicate(timeout=10)
    assert (output, errors) == ("", "")
    seen = [int(line) for line in log.read_text().split()]
    assert set(seen) == set(range(sent))  # some twice: interrupted between work and ack
    assert len(seen) - sent <= queue.statistics().redelivered


def test_ctrl_c_while_a_message_is_dropped_leaves_it_to_others(broker: shmbroker.Broker) -> None:
    """The signal is there when the last reference goes, in the middle of a function of C."""
    queue = broker.declare_queue("q")
    queue.publish(b"x")
    held = [queue.get()]
    interrupt = functools.partial(ctypes.CDLL(None)["raise"], signal.SIGINT)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            collections.deque(map(operator.call, [interrupt, held.clear]), maxlen=0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not held
    assert queue.get_nowait().body == b"x"


BLOCKED_CHILD = """
import sys, time
import shmbroker
with shmbroker.connect(sys.argv[1]) as broker:
    how = sys.argv[2]
    print("ready", flush=True)
    try:
        if how == "get": broker.queue("q").get()
        elif how == "receive": broker.queue("q").receive()
        elif how == "publish": broker.queue("full").publish(b"")
        elif how == "consume": list(broker.queue("q").consume())
        elif how == "subscribe": list(broker.subscribe("q"))
        elif how == "repair_for": broker.repair_for()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("how", ["get", "receive", "publish", "consume", "subscribe", "repair_for"])
def test_ctrl_c_ends_a_wait(vhost: str, broker: shmbroker.Broker, how: str) -> None:
    fill(broker)
    child = subprocess.Popen(
        [sys.executable, "-c", BLOCKED_CHILD, f"shm://{vhost}", how],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        while not is_blocked(child.pid):
            time.sleep(0.005)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.communicate()
    assert [each.name for each in broker.participants()] == [broker.participants()[0].name]
    assert broker.queue("full").statistics().depth == 2


UNINTERRUPTED_CHILD = """
import signal, sys, threading
import shmbroker
# another thread takes the signal: it interrupts no sleep of ours, as one between two sleeps does
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with shmbroker.connect(sys.argv[1]) as broker:
    q, full, durable = map(broker.queue, ["q", "full", "durable"])
    def commit():
        with broker.transaction() as transaction:
            transaction.publish(full, b"")
    calls = {
        "get": q.get, "get_many": lambda: q.get_many(2), "receive": q.receive,
        "receive_many": q.receive_many, "consume": lambda: list(q.consume()),
        "select": lambda: list(q.consume(selector="a = 1")),
        "subscribe": lambda: list(broker.subscribe("q")),
        "publish": lambda: full.publish(b""), "publish_with": lambda: full.publish(b"", key="k"),
        "publish_many": lambda: full.publish_many([b""] * 3),
        "publish_scheduled": lambda: full.publish(b"", deliver_after=60),
        "request": lambda: q.request(b""), "commit": commit,
        "confirm": lambda: durable.publish(b"", confirm="disk"),
    }
    print("ready", flush=True)
    try:
        calls[sys.argv[2]]()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    "how",
    ["get", "get_many", "receive", "receive_many", "consume", "select", "subscribe", "publish",
     "publish_with", "publish_many", "publish_scheduled", "request", "commit", "confirm"],
)  # fmt: skip
def test_ctrl_c_between_two_sleeps_is_not_lost(
    vhost: str, broker: shmbroker.Broker, how: str
) -> None:
    broker.declare_queue("q")
    full = broker.declare_queue("full", slots=2, max_scheduled=2)
    full.publish_many([b"1", b"2"])
    for _ in range(2):
        full.publish(b"", deliver_after=60)
    broker.declare_queue("durable", durable=True)
    child = subprocess.Popen(
        [sys.executable, "-c", UNINTERRUPTED_CHILD, f"shm://{vhost}", how],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        while not is_blocked(child.pid):
            time.sleep(0.005)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=20)[0] == "interrupted\n"
    finally:
        child.kill()
        child.communicate()


def is_blocked(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()[0] == "S"


def test_signals_that_python_handles_do_not_end_a_wait(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    handled = []
    former = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        start = time.monotonic()
        with pytest.raises(shmbroker.Empty):
            queue.get(timeout=0.3)
        assert 0.3 <= time.monotonic() - start < 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert len(handled) > 5


def test_nothing_is_left_of_a_vhost(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for index in range(20):
            broker.declare_queue(f"q{index}", slots=4).publish(b"a")
        broker.declare_exchange("x", "fanout")
    shmbroker.vhost.delete(vhost)
    assert not [name for name in os.listdir("/dev/shm") if vhost in name]  # noqa: PTH208
