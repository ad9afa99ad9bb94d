"""After fork the child's copy of a connection is of no use, says so, and harms nobody."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.machine.process import Process
from tests.conftest import SHM, vhost_for_a_while
from tests.support.compiler import compile_program
from tests.support.host import PATIENCE
from tests.support.repairing import in_change


def in_child(call: Callable[[], None]) -> None:
    """Fork, call, and tell how it went."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            call()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def every_verb_says(error: type[shmbroker.Error], broker: shmbroker.Broker) -> None:
    """Given a broker with a queue q and an exchange x that were used before."""
    queue, exchange = broker._known_queue, broker._known_exchange  # type: ignore[attr-defined]
    message, loan, subscription = broker._known_uses  # type: ignore[attr-defined]
    calls: list[Callable[[], object]] = [
        lambda: broker.declare_queue("q"),
        lambda: broker.declare_exchange("x", "topic"),
        lambda: broker.bind("x", "q", "#"),
        lambda: broker.unbind("x", "q", "#"),
        lambda: broker.queue("q"),
        lambda: broker.exchange("x"),
        lambda: broker.delete_queue("q"),
        lambda: broker.delete_exchange("x"),
        lambda: broker.subscribe("q"),
        broker.temporary_queue,
        broker.queues,
        broker.exchanges,
        broker.bindings,
        broker.participants,
        broker.errors,
        broker.repair,
        lambda: broker.repair_for(1),
        lambda: queue.publish(b"x"),
        lambda: queue.publish(b"x", key="k"),
        lambda: queue.publish_nowait(b"x"),
        lambda: queue.publish_many([b"x"]),
        lambda: queue.get(),
        lambda: queue.get_nowait(),
        lambda: queue.get_many(2),
        lambda: queue.receive(),
        lambda: queue.receive_many(),
        lambda: list(queue.consume()),
        lambda: list(queue.browse()),
        lambda: queue.loan(1),
        lambda: queue.request(b"x"),
        queue.purge,
        queue.pause,
        queue.resume,
        queue.statistics,
        queue.port,
        lambda: queue.is_paused,
        lambda: exchange.publish(b"x", key="k"),
        message.ack,
        loan.publish,
        lambda: subscription.get(timeout=1),
    ]
    for call in calls:
        with pytest.raises(error, match="connect"):
            call()
    assert broker.is_closed


def used(vhost: str) -> shmbroker.Broker:
    broker = shmbroker.connect(f"shm://{vhost}")
    queue, exchange = broker.declare_queue("q", slots=8), broker.declare_exchange("x", "topic")
    broker.bind("x", "q", "#")
    queue.publish(b"a")
    exchange.publish(b"b")
    uses = (queue.get(), queue.loan(5), broker.subscribe("q"))
    broker.__dict__.update(_known_queue=queue, _known_exchange=exchange, _known_uses=uses)
    return broker


def test_every_verb_of_a_closed_connection(vhost: str) -> None:
    broker = used(vhost)
    broker.close()
    every_verb_says(shmbroker.ConnectionClosed, broker)


def test_every_verb_of_a_forked_connection(vhost: str) -> None:
    with used(vhost) as broker:
        in_child(lambda: every_verb_says(shmbroker.ConnectionForked, broker))
        message, loan, _ = broker._known_uses  # type: ignore[attr-defined]
        message.ack()  # and the parent goes on
        loan.view[:] = b"hello"
        loan.publish()
        assert broker.queue("q").receive_many() == [b"b", b"hello"]
        assert [each.state for each in broker.participants()] == ["live"]


def test_a_child_that_drops_its_copies_leaves_the_parent_s_alone(vhost: str) -> None:
    with used(vhost) as broker:

        def drop() -> None:
            broker.close()
            broker.__dict__.clear()

        in_child(drop)
        assert broker.queue("q").statistics().taken == 1
        assert [each.state for each in broker.participants()] == ["live"]
        assert broker.repair() == 0


def test_a_child_connects_anew(vhost: str) -> None:
    with used(vhost) as broker:

        def publish() -> None:
            with shmbroker.connect(f"shm://{vhost}") as own:
                assert own.participant != broker.participant
                own.queue("q").publish(b"child")

        in_child(publish)
        assert broker.queue("q").receive_many() == [b"b", b"child"]


def test_a_child_that_lives_on_does_not_keep_its_dead_parent_alive(vhost: str) -> None:
    """The parent's lock must fall with the parent, although the child has copies of all files."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        queue.publish(b"a")
        started, end = os.pipe(), os.pipe()
        parent = os.fork()
        if parent == 0:
            own = shmbroker.connect(f"shm://{vhost}")
            taken = own.queue("q").get()
            if os.fork() == 0:  # the child: lives until the test ends
                os.close(end[1])
                os.read(end[0], 1)
                os._exit(0)
            os.write(started[1], b"%d" % len(taken.body))
            os._exit(1)  # as a kill would: nothing is closed
        os.close(end[0])
        assert os.read(started[0], 1) == b"1"
        os.waitpid(parent, 0)
        with queue.get(timeout=5) as message:
            assert (message.body, message.deliveries) == (b"a", 1)
        for file in (*started, end[1]):
            os.close(file)


@contextmanager
def paused_child(errors: Path) -> Iterator[int]:
    """It has copies of all that is open, and does nothing."""

    def pause() -> int:
        signal.pause()
        return 0

    child = Process(pause, errors)
    try:
        yield child.pid
    finally:
        child.kill()


def locks_of(pid: int, path: Path) -> list[bool]:
    """Of each descriptor that it has of this file, whether it is locked by it."""
    found = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed since
            if file.readlink() == path:
                found.append("lock:" in Path(f"/proc/{pid}/fdinfo/{file.name}").read_text())
    return found


def test_a_child_that_is_forked_while_a_thread_connects_keeps_nobody_alive(vhost: str) -> None:
    """Who joins has its lock before it is connected: first it repairs what a dead one has left, for
    which it waits here until the catalog's lock is free."""

    def publish_and_die() -> None:
        shmbroker.connect(f"shm://{vhost}").declare_queue("q").publish(b"a")
        os._exit(0)

    in_child(publish_and_die)
    participants = SHM / f"shmbroker.{vhost}.participants"
    connecting = threading.Thread(target=lambda: shmbroker.connect(f"shm://{vhost}").close())
    with in_change(vhost):
        connecting.start()
        while not any(locks_of(os.getpid(), participants)):
            time.sleep(0.001)
        in_child(lambda: os._exit(any(locks_of(os.getpid(), participants))))
    connecting.join()


def test_a_child_that_is_forked_while_a_thread_makes_a_vhost_keeps_nobody_from_that(
    tmp_path: Path,
) -> None:
    """All who make or delete one take turns, by a lock that is let go of also where the child has a
    copy of its descriptor."""
    copies: list[bool] = []
    ends_at = time.monotonic() + PATIENCE
    with vhost_for_a_while() as name:
        while not copies:
            assert time.monotonic() < ends_at, "no child has a copy"
            making = threading.Thread(target=lambda: vhosts.create(name, arena_bytes=1 << 20))
            making.start()
            while making.is_alive() and not any(locks_of(os.getpid(), SHM)):
                pass
            with paused_child(tmp_path / "errors") as child:
                making.join()
                copies = locks_of(child, SHM)
            vhosts.delete(name)
    assert not any(copies)


def publish_from(vhost: str, count: int) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for index in range(count):
            broker.queue("q").publish(b"%d" % index)


def test_multiprocessing(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            children = [context.Process(target=publish_from, args=(vhost, 10)) for _ in range(2)]
            for child in children:
                child.start()
            for child in children:
                child.join(60)
                assert child.exitcode == 0
            assert sorted(queue.receive_many()) == sorted(
                [b"%d" % index for index in range(10)] * 2
            )


FORKING = """
#include <shmbroker.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) \\
    do { if (!(condition)) { printf("line %d\\n", __LINE__); return 1; } } while (0)

int main(int count, char **arguments)
{
    sb_connection *connection, *own;
    sb_queue *queue;
    sb_message message;
    CHECK(count == 2 && sb_connect(arguments[1], "parent", &connection) == SB_OK);
    CHECK(sb_declare_queue(connection, "q", 8) == SB_OK);
    CHECK(sb_open_queue(connection, "q", &queue) == SB_OK);
    CHECK(sb_publish(queue, "a", 1, 0) == 0);
    CHECK(sb_get(queue, &message, 0) == SB_OK);
    pid_t child = fork();
    if (child == 0) {
        CHECK(sb_closed(connection) == SB_FORKED);
        CHECK(sb_publish(queue, "b", 1, 0) == SB_FORKED);
        CHECK(sb_ack(queue, &message) == SB_FORKED);
        CHECK(sb_get(queue, &message, SB_FOREVER) == SB_FORKED);
        CHECK(sb_repair(connection) == SB_FORKED);
        CHECK(sb_disconnect(connection) == SB_FORKED);
        sb_connection_free(connection);
        CHECK(sb_connect(arguments[1], "child", &own) == SB_OK);
        CHECK(sb_open_queue(own, "q", &queue) == SB_OK);
        CHECK(sb_publish(queue, "c", 1, 0) == 1);
        sb_connection_free(own);
        return 0;
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(sb_ack(queue, &message) == SB_OK);
    CHECK(sb_ack(queue, &message) == SB_REVOKED);
    CHECK(sb_get(queue, &message, 0) == SB_OK && memcmp(message.body, "c", 1) == 0);
    CHECK(sb_give_back(queue, &message) == SB_OK);
    sb_connection_free(connection);
    return 0;
}
"""


def test_a_c_program_that_forks(vhost: str, tmp_path: Path) -> None:
    source = tmp_path / "forking.c"
    source.write_text(FORKING)
    program = compile_program(source, tmp_path / "forking")
    done = subprocess.run([program, vhost], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stdout + done.stderr
    with shmbroker.connect(f"shm://{vhost}") as broker:
        assert [each.name for each in broker.participants()] == [broker.participants()[0].name]
        with broker.queue("q").get(timeout=0) as message:
            assert (message.body, message.deliveries) == (b"c", 1)
