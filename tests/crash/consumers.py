"""Consumers: they take, check, note, and acknowledge or give back.

A message that we hold may not change, and nobody else may get it, however long we are stopped: it
is looked at again before it is acknowledged, and DeliveryRevoked is a fault that ends us.
"""

from __future__ import annotations

import time

from shmbroker import Empty, Message, Queue
from tests.crash.journal import ACKED, ACKING, DAMAGED, GAVE, GOT
from tests.crash.part import LEFT, NAMES, ONE, RIGHT, WIDE, WORK, Stage
from tests.crash.payload import seen

PATIENCE = 0.1
BATCH_MAX = 12


def deal_with(stage: Stage, queue: int, message: Message) -> None:
    deliveries, position = message.deliveries, message.position
    key = message.key if len(message.view) == 0 else None
    first = seen(message.view, key)
    kind = GOT if first.is_whole else DAMAGED
    length = len(message.view)
    about = (queue, first.identity, first.number, position, deliveries, length)
    stage.journal.note(kind, *about)
    fate = stage.random.random()
    if fate < 0.02:
        time.sleep(0.002)  # held for long: here the others go round
    if fate < 0.1 and seen(message.view, key) != first:
        stage.journal.note(DAMAGED, *about)
    if 0.1 < fate < 0.15:
        message.give_back()
        stage.journal.note(GAVE, *about)
    else:
        stage.journal.note(ACKING, *about)
        message.ack()
        stage.journal.note(ACKED, *about)


def _take_one(stage: Stage, number: int, queue: Queue, patience: float) -> None:
    try:
        message = queue.get(timeout=patience)
    except Empty:
        return
    deal_with(stage, number, message)


def one_by_one(stage: Stage) -> int:
    with stage.connect() as broker:
        queue = broker.queue(NAMES[WORK])
        while not stage.is_over:
            _take_one(stage, WORK, queue, PATIENCE)
    return 0


def alone(stage: Stage) -> int:
    """The only consumer of its queue."""
    with stage.connect() as broker:
        queue = broker.queue(NAMES[ONE])
        while not stage.is_over:
            _take_one(stage, ONE, queue, PATIENCE)
    return 0


def pair(stage: Stage) -> int:
    """Two queues in turn."""
    with stage.connect() as broker:
        queues = {number: broker.queue(NAMES[number]) for number in (LEFT, RIGHT)}
        while not stage.is_over:
            for number, queue in queues.items():
                _take_one(stage, number, queue, PATIENCE / 10)
    return 0


def batches(stage: Stage) -> int:
    """Several at once, some of which are dropped without a word: they go back by themselves."""
    with stage.connect() as broker:
        queues = {number: broker.queue(NAMES[number]) for number in (WORK, WIDE)}
        while not stage.is_over:
            for number, queue in queues.items():
                count = stage.random.randint(1, BATCH_MAX)
                try:
                    messages = queue.get_many(count, timeout=PATIENCE / 10)
                except Empty:
                    continue
                if stage.random.random() < 0.05:
                    del messages[len(messages) // 2 :]
                for message in messages:
                    deal_with(stage, number, message)
                messages.clear()
    return 0
