"""Visitors: they connect, declare, subscribe, delete and close all the time, or repair."""

from __future__ import annotations

from contextlib import suppress

from shmbroker import Broker, Empty, InUse, NotFound, QueueFull
from tests.crash.journal import GOT
from tests.crash.part import NAMES, WORK, Stage
from tests.crash.payload import body_of, seen

TEMPORARY = ("passing-1", "passing-2", "passing-3")
SCRATCH = "passing"
SLOTS = 512
"""No other test has queues of this size: so half-made ones are known to be ours."""
MESSAGES_MAX = 8


def passing(stage: Stage) -> int:
    """Come, do something with a queue that others delete as well, and go."""
    number = 0
    while not stage.is_over:
        with stage.connect() as broker:
            for _ in range(stage.random.randint(0, 3)):
                with suppress(NotFound, InUse, QueueFull, Empty):  # others were faster
                    _visit(stage, broker, stage.random.choice(TEMPORARY), number)
                number += 1
        stage.journal.note(GOT, len(NAMES), stage.identity, number)  # a sign of life
    return 0


def _visit(stage: Stage, broker: Broker, name: str, number: int) -> None:
    queue = broker.declare_queue(name, slots=SLOTS)
    broker.declare_exchange(SCRATCH, "fanout")
    broker.bind(SCRATCH, name)
    for each in range(stage.random.randint(0, MESSAGES_MAX)):
        queue.publish_nowait(body_of(stage.identity, number, 100 * each))
    if stage.random.random() < 0.5:
        message = queue.get_nowait()
        assert seen(message.view, message.key).is_whole
        if stage.random.random() < 0.5:
            message.ack()
    if stage.random.random() < 0.3:
        broker.unbind(SCRATCH, name)
    if stage.random.random() < 0.3:
        broker.delete_queue(name, force=stage.random.random() < 0.3)


def watching(stage: Stage) -> int:
    """See what goes through the work queue for a while; our gate holds it back."""
    while not stage.is_over:
        with stage.connect() as broker:
            lossy = stage.random.random() < 0.3
            with broker.subscribe(NAMES[WORK], lossy=lossy, timeout=0.1) as subscription:
                for _ in range(stage.random.randint(1, 100)):
                    message = next(subscription, None)
                    if message is None or stage.is_over:
                        break
                    about = seen(message.body, message.key)
                    assert about.is_whole, f"position {message.position} was not what it said"
                    stage.journal.note(GOT, len(NAMES), about.identity, about.number)
    return 0


def repairing(stage: Stage) -> int:
    """Repair as soon as somebody dies."""
    with stage.connect() as broker:
        while not stage.is_over:
            broker.repair_for(0.5)
            stage.journal.note(GOT, len(NAMES), stage.identity, 0)
    return 0
