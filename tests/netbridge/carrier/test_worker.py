"""The worker: in order of one thing, side by side of several, and to the end."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Event

from shmbroker.netbridge.carrier.worker import Worker
from tests.support.link import PATIENCE


def test_one_that_is_stuck_holds_up_its_own_only() -> None:
    told: SimpleQueue[object] = SimpleQueue()
    worker = Worker(lambda step: step(), threads=3)
    goes_on = Event()
    worker.do(lambda: goes_on.wait(PATIENCE), lambda made: told.put(("stuck", made)), of="a")
    worker.do(lambda: 1, lambda made: told.put(("behind it", made)), of="a")
    worker.do(lambda: 2, lambda made: told.put(("another", made)), of="b")
    assert told.get(timeout=PATIENCE) == ("another", 2)
    goes_on.set()
    assert [told.get(timeout=PATIENCE) for _ in range(2)] == [("stuck", True), ("behind it", 1)]
    worker.close()


def test_of_one_thing_all_is_done_in_order() -> None:
    done: list[tuple[int, int]] = []
    worker = Worker(lambda step: step(), threads=4)
    for number in range(200):
        for of in range(5):
            worker.do(lambda of=of, number=number: done.append((of, number)), lambda _: None, of=of)
    worker.close()
    for of in range(5):
        assert [number for each, number in done if each == of] == list(range(200))


def test_what_goes_wrong_is_told_and_the_next_is_done() -> None:
    told: SimpleQueue[object] = SimpleQueue()
    worker = Worker(lambda step: step())
    worker.do(lambda: 1 // 0, told.put)
    worker.do(lambda: 3, told.put)
    assert isinstance(told.get(timeout=PATIENCE), ZeroDivisionError)
    assert told.get(timeout=PATIENCE) == 3
    worker.close()
