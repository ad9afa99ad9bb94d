"""Several threads on one connection: everything arrives once, whoever publishes and takes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

import shmbroker

PRODUCERS, CONSUMERS, EACH = 3, 3, 1500


@pytest.mark.parametrize("how", ["get", "get_many", "receive", "receive_many"])
def test_sums_agree(vhost: str, how: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=64)

        def produce(number: int) -> None:
            for index in range(number, EACH * PRODUCERS, PRODUCERS):
                if index % 5:
                    queue.publish(b"%d" % index)
                elif index % 2:
                    queue.publish(b"%d" % index, key="k", properties={"n": index})
                else:
                    with queue.loan(8) as loan:
                        loan.view[:] = b"%8d" % index

        def consume() -> list[int]:
            seen = []
            while True:
                if how == "get":
                    with queue.get() as message:
                        bodies = [message.body]
                        if message.key:
                            assert message.properties == {"n": int(message.body)}
                elif how == "get_many":
                    messages = queue.get_many(7)
                    bodies = [message.body for message in messages]
                    for message in messages:
                        message.ack()
                elif how == "receive":
                    bodies = [queue.receive()]
                else:
                    bodies = queue.receive_many(7)
                for body in bodies:
                    if body == b"stop":
                        queue.publish(b"stop")
                        return seen
                    seen.append(int(body))

        with ThreadPoolExecutor(PRODUCERS + CONSUMERS) as pool:
            consumers = [pool.submit(consume) for _ in range(CONSUMERS)]
            producers = [pool.submit(produce, number) for number in range(PRODUCERS)]
            wait(producers)
            for producer in producers:
                producer.result()
            queue.publish(b"stop")
            seen = [number for consumer in consumers for number in consumer.result(60)]
        assert sorted(seen) == list(range(EACH * PRODUCERS))
        assert queue.receive_many(timeout=0) == [b"stop"]
        assert queue.statistics().depth == 0


def test_declaring_and_deleting_from_several_threads(vhost: str) -> None:
    """Each thread makes, uses and deletes queues; an exchange of all of them is in between."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        exchange = broker.declare_exchange("x", "topic")

        def work(number: int) -> None:
            for lap in range(30):
                queue = broker.declare_queue(f"q{number}", slots=4)
                broker.bind("x", queue.name, f"{number}.#")
                assert exchange.publish(b"%d" % lap, key=f"{number}.a") == 1
                assert queue.receive(timeout=0) == b"%d" % lap
                broker.delete_queue(queue.name)

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(work, number) for number in range(4)]:
                done.result(60)
        assert broker.queues() == []
        assert broker.bindings() == []


def test_closing_under_load(vhost: str) -> None:
    """All threads learn that the connection is closed, and nothing that was published is lost."""
    for _ in range(20):
        broker = shmbroker.connect(f"shm://{vhost}")
        queue = broker.declare_queue("q", slots=64)
        counts, started = [0, 0], threading.Barrier(3)

        def run(which: int) -> None:
            started.wait(10)  # noqa: B023
            try:
                while True:
                    if which == 0:
                        queue.publish(b"x")  # noqa: B023
                    else:
                        queue.get().ack()  # noqa: B023
                    counts[which] += 1  # noqa: B023
            except shmbroker.ConnectionClosed:
                pass

        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(run, which) for which in (0, 1)]
            started.wait(10)
            broker.close()
            for each in running:
                each.result(10)
        with shmbroker.connect(f"shm://{vhost}") as after:
            left = after.queue("q").purge()
            # one of each may have been done and not told: closed in the middle of the call
            assert -1 <= counts[0] - counts[1] - left <= 1


LANES = 64


@pytest.mark.parametrize("verb", ["ack", "give_back", "reject", "drop"])
def test_what_is_in_hand_is_dealt_with_although_all_lanes_are_on_loan(
    broker: shmbroker.Broker, verb: str
) -> None:
    queue = broker.declare_queue("q", slots=256)
    queue.publish_many([b"%d" % number for number in range(8)])
    held = queue.get_many(8)
    loans = [queue.loan(1) for _ in range(LANES)]
    if verb == "drop":
        held.clear()
    with ThreadPoolExecutor(8) as pool:  # there is one way in for all of them
        for done in [pool.submit(getattr(message, verb)) for message in held]:
            done.result()
    with pytest.raises(shmbroker.TooMany):
        queue.loan(1)
    for loan in loans:
        loan.drop()
    left = [each.taken_by for each in queue.browse()]
    assert left == (8 * [None] if verb in ("give_back", "drop") else [])
