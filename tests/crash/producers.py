"""Producers: they publish until they are told to end, and note what publish has confirmed."""

from __future__ import annotations

from shmbroker import Exchange, Queue, QueueFull
from tests.crash.journal import CONFIRMED
from tests.crash.part import KEY, LEFT, NAMES, ONE, RIGHT, TOPIC, WORK, Stage
from tests.crash.payload import HEADER_BYTES, body_of, key_of, random_length

BATCH_MAX = 8
PATIENCE = 0.05


def one_by_one(stage: Stage) -> int:
    """To the work queue and to the one with a single consumer; some messages are empty."""
    with stage.connect() as broker:
        queues = {number: broker.queue(NAMES[number]) for number in (WORK, ONE)}
        number = 0
        while not stage.is_over:
            to = WORK if stage.random.random() < 0.7 else ONE
            body, key = body_of(stage.identity, number, random_length(stage.random)), None
            if stage.random.random() < 0.05:
                body, key = b"", key_of(stage.identity, number)
            try:
                position = queues[to].publish(body, key=key, timeout=PATIENCE)
            except QueueFull:
                continue  # nothing was published: the number is still to be used
            stage.journal.note(CONFIRMED, to, stage.identity, number, position)
            number += 1
    return 0


def batches(stage: Stage) -> int:
    """Several at once, and loans."""
    with stage.connect() as broker:
        queue = broker.queue(NAMES[WORK])
        number = 0
        while not stage.is_over:
            if stage.random.random() < 0.3:
                number += _lend(stage, queue, number)
            else:
                number += _publish_many(stage, queue, number)
    return 0


def _publish_many(stage: Stage, queue: Queue, number: int) -> int:
    count = stage.random.randint(1, BATCH_MAX)
    bodies = [
        body_of(stage.identity, number + each, random_length(stage.random)) for each in range(count)
    ]
    try:
        done = queue.publish_many(bodies, timeout=PATIENCE)
    except QueueFull as error:
        done = error.published
    stage.journal.confirmed_many(WORK, stage.identity, number, done)
    return done


def _lend(stage: Stage, queue: Queue, number: int) -> int:
    length = random_length(stage.random)
    loan = queue.loan(HEADER_BYTES + length)
    loan.view[:] = body_of(stage.identity, number, length)
    if stage.random.random() < 0.1:
        loan.drop()
        return 0
    position = loan.publish()
    stage.journal.note(CONFIRMED, WORK, stage.identity, number, position)
    return 1


def by_topic(stage: Stage) -> int:
    """Through the topic exchange, to two queues at once."""
    with stage.connect() as broker:
        exchange: Exchange = broker.exchange(TOPIC)
        number = 0
        while not stage.is_over:
            body = body_of(stage.identity, number, random_length(stage.random))
            reached = exchange.publish(body, key=KEY, mandatory=True)
            assert reached == 2, f"message {number} reached {reached} queues instead of 2"
            for queue in (LEFT, RIGHT):
                stage.journal.note(CONFIRMED, queue, stage.identity, number)
            number += 1
    return 0
