"""The end of a network thread: nobody is forgotten, and nobody waits for it."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from shmbroker.ipc.base.errors import ConnectionClosed
from shmbroker.netbridge.carrier import thread as module
from shmbroker.netbridge.carrier.sleeper import Sleeper
from shmbroker.netbridge.carrier.thread import NetworkThread

PATIENCE = 60.0


class Leaves:
    """A member that leaves the list as it ends, as all do."""

    due = math.inf

    def __init__(self, thread: NetworkThread) -> None:
        self.has_ended = False
        self._thread = thread
        thread.members.append(self)

    def woken(self, now: float) -> None: ...

    def end(self) -> None:
        self._thread.members.remove(self)
        self.has_ended = True


def test_each_member_is_ended_though_they_leave_the_list() -> None:
    thread = NetworkThread()
    members = [Leaves(thread) for _ in range(4)]
    thread.close()
    assert all(each.has_ended for each in members)


def asks(thread: NetworkThread, said: SimpleQueue[object]) -> None:
    try:
        said.put(thread.ask(lambda: "answered"))
    except ConnectionClosed as error:
        said.put(error)


def test_who_asks_while_the_thread_ends_does_not_wait_for_ever() -> None:
    thread, said = NetworkThread(), SimpleQueue[object]()
    asker = threading.Thread(target=asks, args=(thread, said), daemon=True)

    class Last(Leaves):
        def end(self) -> None:
            super().end()
            thread.call(self.last)

        def last(self) -> None:
            """The thread still lives, and takes no more questions."""
            asker.start()
            while not thread._calls and said.empty():
                time.sleep(0.001)

    Last(thread)
    thread.close()
    assert isinstance(said.get(timeout=PATIENCE), ConnectionClosed)
    assert not thread.takes(lambda: None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_waits_for_an_answer_that_nobody_gives_any_more_does_not_wait_for_ever() -> None:
    thread = NetworkThread()
    given: Future[str] = Future()
    thread.call(lambda: given.set_result("answered"))
    assert thread.answered(given) == "answered"
    said: SimpleQueue[object] = SimpleQueue()

    def waits() -> None:
        try:
            said.put(thread.answered(Future()))
        except ConnectionClosed as error:
            said.put(error)

    waiting = threading.Thread(target=waits)
    waiting.start()
    thread.close()
    assert isinstance(said.get(timeout=PATIENCE), ConnectionClosed)
    waiting.join(PATIENCE)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_cannot_begin_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("too many files")

    monkeypatch.setattr(module, "Authenticator", fails)
    thread = NetworkThread()
    thread._thread.join()
    with pytest.raises(ConnectionClosed) as raised:
        thread.ask(lambda: None)
    assert raised.value.__cause__ is thread.failure
    assert "too many files" in str(thread.failure)
    thread.close()


def test_there_is_one_sleeper_whoever_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread rings one; who waits with another one waits for ever."""
    made, both = threading.Event(), threading.Event()

    class Slow(Sleeper):
        def __init__(self, eventfd: int) -> None:
            made.set()
            both.wait(0.2)
            super().__init__(eventfd)

    monkeypatch.setattr(module, "Sleeper", Slow)
    with NetworkThread() as network:
        found: list[Sleeper] = []
        outbox = threading.Thread(target=lambda: found.append(network.sleeper))
        outbox.start()
        assert made.wait(30)
        made.clear()
        found.append(network.ask(lambda: network.sleeper))
        outbox.join()
        assert found[0] is found[1]


def eventfds() -> int:
    """Of this process."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the folder itself
            found += str(each.readlink()) == "anon_inode:[eventfd]"
    return found


def test_one_that_nobody_closes_leaves_no_descriptor_when_it_ends() -> None:
    before = eventfds()
    thread = NetworkThread()
    thread.call(thread.stop)
    assert thread.wait() == ""
    assert eventfds() == before
    thread.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_why_it_has_failed_is_told_and_not_that_it_was_closed() -> None:
    failed, closed = NetworkThread(), NetworkThread()
    told = SimpleQueue[str]()
    for each in (failed, closed):
        each.tell_failure(told.put)
    failed.call(lambda: 1 // 0)
    closed.close()
    for each in threading.enumerate():
        if each.name == "watches the network":
            each.join()
    why = told.get_nowait()
    assert why.startswith("the network thread has ended")
    assert "ZeroDivisionError" in why
    assert told.empty()
    failed.close()
