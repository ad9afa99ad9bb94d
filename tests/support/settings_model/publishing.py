"""Steps: publishing, in each way that there is."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import shmbroker
from tests.support.settings_model import choices
from tests.support.settings_model.exchange import EXCHANGES
from tests.support.settings_model.message import AT_ONCE, GROUP, ID, NOT_TODAY, MessageModel
from tests.support.settings_model.queue import SCHEDULED, QueueModel
from tests.support.settings_model.world import Deviation, World, counts_bytes, raises, same, step

BLOCK = 4096
OVERHEAD = 300
PATIENCE = 60.0


def message_of(body: bytes, options: dict[str, Any], message_id: str | None = None) -> MessageModel:
    properties = dict(options.get("properties") or {})
    if "group" in options:
        properties[GROUP] = options["group"]
    if message_id is not None:
        properties[ID] = message_id
    return MessageModel(
        body, options.get("key"), options.get("priority"), properties, options.get("ttl")
    )


def expect(
    queue: QueueModel, message: MessageModel, call: Any, producer: tuple[str, int] | None = None
) -> None:
    """The position, None for a duplicate, or QueueFull."""
    if queue.once.knows(message.properties.get(ID), producer):
        queue.counts["duplicates"] += 1
        same("the answer for a duplicate", call(), None)
        return
    message.ttl = queue.lifetime(message.ttl)
    if queue.find_room(message):
        same("the position", call(), queue.place(message, producer))
    else:
        with raises(shmbroker.QueueFull, f"{queue.name} has no room"):
            call()


def expect_by_bytes(
    world: World, who: int, queue: QueueModel, message: MessageModel, call: Any
) -> None:
    """There may be no room although the model has some: then there were too many bytes."""
    real, broker = world.real(who, queue), world.brokers[who]
    if queue.once.knows(message.properties.get(ID), None):
        queue.counts["duplicates"] += 1
        same("the answer for a duplicate", call(), None)
        return

    def used() -> tuple[int, int]:
        mine = next(each for each in broker.participants() if each.id == broker.participant)
        return real.statistics().bytes, mine.bytes

    _, shared = used()
    try:
        position = call()
    except shmbroker.QueueFull:
        position = None
    if real.statistics().expired != queue.counts["expired"]:
        queue.expire()
    message.ttl = queue.lifetime(message.ttl)
    after, now = used()
    limit, share = queue.settings.get("max_bytes"), queue.settings.get("max_producer_bytes")
    if position is not None:
        if not queue.has_room(message):
            raise Deviation(f"{queue.name} has no room, and took a message")
        same("the position", position, queue.place(message))
        if share is not None and now > max(share, shared):
            raise Deviation(f"{now} bytes of the arena, and {queue.name} allows {share}")
        if limit is not None and after > limit * 1.5:  # the others count again by and by
            raise Deviation(f"{after} bytes in {queue.name}, which may have {limit}")
    elif queue.has_room(message):
        wanted = len(message.body) + OVERHEAD
        over = limit is not None and after + wanted > limit
        over |= share is not None and now + (wanted // BLOCK + 1) * BLOCK > share
        if not over:
            raise Deviation(f"{queue.name} has room for {wanted} bytes, and refused: {used()}")


@step(24)
def publish(world: World, random: Random) -> bool | None:
    queue, who = world.some(random), world.who(random)
    if queue is None:
        return False
    options, message_id = choices.some_options(random), choices.some_id(random)
    body = world.new_body(random, queue)
    message, real = message_of(body, options, message_id), world.real(who, queue)
    world.tell(f"  {body[:8]!r} to {queue.name} by {who}: {options} {message_id or ''}")
    if counts_bytes(queue):
        expect_by_bytes(
            world,
            who,
            queue,
            message,
            lambda: real.publish(body, message_id=message_id, timeout=0, **options),
        )
    elif random.random() < 0.8:
        expect(
            queue, message, lambda: real.publish(body, message_id=message_id, timeout=0, **options)
        )
    else:
        world.tell("  lent")
        loan = real.loan(len(body), message_id=message_id, **options)
        loan.view[:] = body
        expect(queue, message, lambda: loan.publish(timeout=0))
        if loan.is_open:
            loan.drop()
    return None


@step(4)
def publish_many(world: World, random: Random) -> bool | None:
    queue, who = world.some(random, lambda each: not counts_bytes(each)), world.who(random)
    if queue is None:
        return False
    bodies = [world.new_body(random) for _ in range(random.randrange(1, 6))]
    done = 0
    for body in bodies:
        message = message_of(body, {})
        message.ttl = queue.lifetime(None)
        if not queue.find_room(message):
            break
        queue.place(message)
        done += 1
    world.tell(f"  {len(bodies)} to {queue.name} by {who}")
    try:
        count = world.real(who, queue).publish_many(bodies, timeout=0)
    except shmbroker.QueueFull as error:
        same("whether all have room", done < len(bodies), True)
        count = error.published
    same("how many", count, done)
    return None


@step(5)
def publish_numbered(world: World, random: Random) -> bool | None:
    """By a named producer, some numbers again."""
    queue = world.some(random, lambda each: not counts_bytes(each))
    who, name = world.who(random), random.choice(["p", "q"])
    if queue is None:
        return False
    real = world.real(who, queue)
    if queue.is_last_value:
        with raises(shmbroker.InvalidArgument, "a named producer of last values"):
            real.producer(name)
        return None
    producer, last = real.producer(name), queue.once.numbers.get(name, 0)
    same("the last number", producer.last_sequence, last)
    number = max(1, last + random.randrange(-1, 3))
    options = choices.some_options(random)
    options.pop("group", None)
    body = world.new_body(random)
    world.tell(f"  {body[:8]!r} to {queue.name} by {who}: {name} {number} {options}")
    expect(
        queue,
        message_of(body, options),
        lambda: producer.publish(body, sequence=number, timeout=0, **options),
        (name, number),
    )
    return None


@step(4)
def publish_to_exchange(world: World, random: Random) -> bool | None:
    who, exchange = world.who(random), random.choice(EXCHANGES)
    options, message_id = choices.some_options(random), choices.some_id(random)
    options["key"] = random.choice(choices.KEYS)
    targets = world.routes.route(exchange, options["key"])
    real, body = world.brokers[who].exchange(exchange), world.new_body(random)
    world.changed.extend(targets)
    names = sorted(queue.name for queue in targets)
    world.tell(f"  {body[:8]!r} to {exchange} by {who}: {options} {message_id or ''} for {names}")
    if not targets:
        with raises(shmbroker.Unroutable, "nobody takes it"):
            real.publish(body, mandatory=True, timeout=0, **options)
    known, roomy, full = list[QueueModel](), list[QueueModel](), list[QueueModel]()
    for queue in targets:
        message = message_of(body, options, message_id)
        if queue.once.knows(message_id, None):
            known.append(queue)
        else:
            (roomy if could_take(queue, message) else full).append(queue)
    before = {queue: statistics(world, queue) for queue in targets}
    try:
        answer = real.publish(body, message_id=message_id, timeout=0, **options)
    except shmbroker.QueueFull:
        answer = None
    same("whether all have room", answer, None if full else len(targets))
    for queue in known + roomy + full:
        message = message_of(body, options, message_id)
        message.ttl = queue.lifetime(message.ttl)
        now, then = statistics(world, queue), before[queue]
        if queue in known:
            told = now.duplicates - then.duplicates
            queue.counts["duplicates"] += told
            same("how often it is a duplicate", told if full else 1, told)
        elif queue in roomy and now.published > then.published:
            queue.find_room(message)
            queue.place(message)
        elif queue in roomy:
            same("whether it was published", bool(full), True)  # a queue before it was full
        elif (now.expired, now.dropped, now.carried) != (then.expired, then.dropped, then.carried):
            queue.find_room(message)
    return None


def could_take(queue: QueueModel, message: MessageModel) -> bool:
    """Whether room can be made: tried with a copy."""
    copy = QueueModel(queue.name, queue.settings, queue.slots)
    copy.is_paused = queue.is_paused
    for each in queue.log:
        there = each.copy()
        copy.append(there)
        there.state, there.age = each.state, each.age
    return copy.find_room(message)


def statistics(world: World, queue: QueueModel) -> Any:
    return world.real(0, queue).statistics()


@step(3)
def schedule(world: World, random: Random) -> bool | None:
    """For a time that does not come."""
    queue, who = world.some(random, lambda each: not counts_bytes(each)), world.who(random)
    if queue is None:
        return False
    options, body, real = (
        choices.some_options(random),
        world.new_body(random),
        world.real(who, queue),
    )
    world.tell(f"  {body[:8]!r} to {queue.name} by {who}: {options}")

    def call() -> int:
        number: int = real.publish(body, deliver_after=NOT_TODAY, timeout=0, **options)
        return number

    if len(queue.scheduled) >= SCHEDULED:
        with raises(shmbroker.QueueFull, "the schedule is full"):
            call()
        return None
    same("whether it has an id", call() > 0, True)
    queue.scheduled.append(message_of(body, options))
    return None


@step(2)
def schedule_soon(world: World, random: Random) -> bool | None:
    """For a time that comes at once; somebody moves them into the queue, and we wait for that.

    For one after the other: who moves them may stand still for a while, and another goes on.  For
    the end of its transaction: a message is there before its key finds it, and before it expires.
    """
    who, count = world.who(random), random.randrange(1, 4)
    queue = world.some(
        random,
        lambda each: (
            not counts_bytes(each)
            and len(each.scheduled) + count <= SCHEDULED
            and each.window + count <= each.most
        ),
    )
    if queue is None:
        return False
    real = world.real(who, queue)
    for _ in range(count):
        options, body = choices.some_options(random), world.new_body(random)
        world.tell(f"  {body[:8]!r} to {queue.name} by {who}: {options}")
        real.publish(body, deliver_after=AT_ONCE, timeout=0, **options)
        message = message_of(body, options)
        message.ttl = queue.lifetime(message.ttl)
        queue.place(message)
        end = time.monotonic() + PATIENCE
        while not has_come(queue, real.statistics()) or world.is_committing():
            if time.monotonic() > end:
                raise Deviation(f"what was scheduled for now does not come to {queue.name}")
    return None


def has_come(queue: QueueModel, told: Any) -> bool:
    seen = told.scheduled, told.published, told.replaced
    return seen == (len(queue.scheduled), queue.published, queue.counts["replaced"])


@step(2)
def cancel(world: World, random: Random) -> bool | None:
    queue, who = world.some(random, lambda each: bool(each.scheduled)), world.who(random)
    if queue is None:
        return False
    place = random.randrange(len(queue.scheduled))
    before = [each.body for each in queue.scheduled[:place]]
    chosen = queue.scheduled.pop(place)
    real = world.real(who, queue)
    world.tell(f"  {chosen.body[:8]!r} of {queue.name}")
    ids = sorted(each.id for each in real.scheduled() if each.body == chosen.body)
    found = ids[before.count(chosen.body)]  # what was imported may be there twice
    same("whether it is cancelled", real.cancel_scheduled(found), True)
    same("whether it is cancelled again", real.cancel_scheduled(found), False)
    return None
