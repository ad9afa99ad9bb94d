"""Orders to a broker, as those who give them wait for each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

import pytest

from shmbroker.ipc.base.errors import Untrusted
from shmbroker.ipc.instance import creation, ordering, process, reloading, status
from shmbroker.ipc.instance.instance import Instance
from shmbroker.ipc.instance.whole import read_whole, write_whole
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import eventually
from tests.support.other_user import OTHER
from tests.support.runs import PATIENCE_SECONDS, Run
from tests.support.stopped import stop

ORDERS = """
import sys
from pathlib import Path
from shmbroker.ipc.instance import ordering
with ordering._alone(Path(sys.argv[1], "run"), 60):
    print("alone", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def instance(tmp_path: Path, vhost: str) -> Iterator[Instance]:
    """One that does not run: the test does what its loop would."""
    made = Instance(creation.create(tmp_path / "one", {"instance.vhost": vhost}))
    yield made
    made.sign.close()
    made.lock.close()


class Heard:
    """A network that carries out all orders."""

    def __init__(self) -> None:
        self.orders: list[object] = []

    def order(self, given: Mapping[str, object]) -> None:
        self.orders.append(given["verb"])


def test_an_order_whose_asker_has_given_up_is_not_done_again_as_the_next_one(
    tmp_path: Path, instance: Instance
) -> None:
    """The broker was busy for so long: it has two signals, and finds the second order twice."""
    network = Heard()
    instance.network = cast(Any, network)
    place = tmp_path / "one" / status.RUN / ordering.ORDER
    threads = set(threading.enumerate())
    for number, verb in enumerate(("first", "second")):
        write_whole(place, {"id": str(number), "verb": verb})
        instance._asked_to()
    for _ in range(2):
        instance.inbox.get()()
    for thread in set(threading.enumerate()) - threads:
        thread.join()
    assert network.orders == ["second"]


class Settling:
    """A network of which each `settles` takes until it is let go."""

    def __init__(self) -> None:
        self.settling: SimpleQueue[threading.Event] = SimpleQueue()

    def settles(self) -> None:
        goes = threading.Event()
        self.settling.put(goes)
        assert goes.wait(PATIENCE_SECONDS)


def test_what_comes_late_of_a_reload_does_not_take_the_place_of_the_answer_to_the_next(
    tmp_path: Path, instance: Instance
) -> None:
    """Who has asked for that reads the file when it changes, and would wait in vain."""
    network = Settling()
    instance.network = cast(Any, network)
    instance.reload = lambda config: reloading.Reloaded(config, (), ())
    run = tmp_path / "one" / status.RUN
    begun = []
    for number in ("first", "second"):
        write_whole(run / reloading.ASKED, {"id": number})
        instance._reload()
        begun.append(network.settling.get(timeout=PATIENCE_SECONDS))
    for goes in reversed(begun):
        goes.set()
        instance.inbox.get(timeout=PATIENCE_SECONDS)()
        assert read_whole(run / reloading.ANSWER)["id"] == "second"


def test_who_gives_an_order_and_stands_still_holds_up_nobody_for_ever(tmp_path: Path) -> None:
    sign = status.Sign(tmp_path)
    command = [sys.executable, "-c", ORDERS, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"alone\n"
            stop(other.pid)
            began = time.monotonic()
            assert not ordering.asked_to_show(tmp_path, "programs", 0.2)
            assert time.monotonic() - began >= 0.2
            assert ordering.asked(tmp_path, {}, 60, waits=False) is None
        finally:
            other.kill()
    sign.close()


def test_who_is_not_the_user_of_the_broker_orders_nothing_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    """Root, say: the broker could not read it."""
    sign = status.Sign(tmp_path)
    sign.show(status.Status("live", process=process.this()))
    run = tmp_path / status.RUN
    for path in (run, run / "status"):
        os.chown(path, OTHER, OTHER)
    there = set(run.iterdir())
    assert not ordering.asked_to_show(tmp_path, "programs", 0)
    with pytest.raises(Untrusted, match=f"user {OTHER}"):
        reloading.asked(tmp_path, 0)
    assert set(run.iterdir()) == there
    sign.close()


def is_told(run: Run, path: Path) -> bool:
    return any(str(path) in line.get("why", "") for line in run.said())


@pytest.mark.parametrize("locked", ["file"], indirect=True)
def test_what_cannot_be_read_in_run_ends_no_broker(make: Make) -> None:
    run = make("a").start().becomes("live")
    asked = {ordering.ORDER: ordering.SIGNAL, reloading.ASKED: signal.SIGHUP}
    for name, tells in asked.items():
        path = run.folder / status.RUN / name
        write_whole(path, {"id": "1"})
        os.chown(path, OTHER, OTHER)
        status.signalled(run.folder, tells, 0)
        eventually(partial(is_told, run, path))
    assert reloading.asked(run.folder, PATIENCE_SECONDS) is not None
    assert ordering.asked_to_show(run.folder, "programs", PATIENCE_SECONDS)
    assert run.stop() == 0
