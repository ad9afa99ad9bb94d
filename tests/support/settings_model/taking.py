"""Steps: taking, in each way that there is, and dealing with what was taken."""

from __future__ import annotations

from random import Random
from typing import Any

import shmbroker
from tests.support.settings_model import choices
from tests.support.settings_model.groups import EXCLUSIVE, Bucket
from tests.support.settings_model.message import ID, SELECTORS, MessageModel
from tests.support.settings_model.queue import QueueModel
from tests.support.settings_model.world import Held, Loop, World, raises, same, step

NOTES = ("dead.first", "dead.last")


def told(properties: dict[str, Any]) -> dict[str, Any]:
    """But for the times."""
    return {name: value for name, value in properties.items() if name not in NOTES}


def compare(real: Any, expected: MessageModel) -> None:
    """Position first: it says most."""
    same("what is taken", (real.position, real.body), (expected.position, expected.body))
    same("its deliveries", real.deliveries, expected.deliveries)
    same("its key", real.key, expected.key)
    same("its properties", told(real.properties), expected.properties)
    same("its id", real.message_id, expected.properties.get(ID))


def taken(world: World, who: int, queue: QueueModel, expected: MessageModel, real: Any) -> Held:
    compare(real, expected)
    held = Held(who, queue, expected, real)
    world.held.append(held)
    return held


def join(queue: QueueModel, who: int) -> None:
    if queue.groups is not None:
        queue.groups.join(who)


@step(18)
def get(world: World, random: Random) -> bool | None:
    queue, who = world.some(random), world.who(random)
    if queue is None:
        return False
    real = world.real(who, queue)
    world.tell(f"  from {queue.name} by {who}")
    if queue.is_kept:
        with raises(shmbroker.InvalidArgument, "taking from a queue that keeps all"):
            real.get(timeout=0)
        return None
    join(queue, who)
    expected = queue.next(who)
    if expected is None:
        with raises(shmbroker.Empty, f"{queue.name} has nothing for {who}"):
            real.get(timeout=0)
    else:
        taken(world, who, queue, expected, real.get(timeout=0))
    return None


@step(4)
def get_many(world: World, random: Random) -> bool | None:
    queue, who = world.some(random, lambda each: not each.is_kept), world.who(random)
    if queue is None:
        return False
    real, count = world.real(who, queue), random.randrange(1, 5)
    world.tell(f"  {count} from {queue.name} by {who}")
    join(queue, who)
    expected = queue.next_many(who, count)
    if not expected:
        with raises(shmbroker.Empty, f"{queue.name} has nothing for {who}"):
            real.get_many(count, timeout=0)
        return None
    messages = real.get_many(count, timeout=0)
    same("how many", len(messages), len(expected))
    for message, each in zip(messages, expected, strict=True):
        taken(world, who, queue, each, message)
    return None


@step(5)
def receive(world: World, random: Random) -> bool | None:
    queue, who = world.some(random, lambda each: not each.is_kept), world.who(random)
    if queue is None:
        return False
    real, count = world.real(who, queue), random.choice([None, None, 1, 4])
    world.tell(f"  {count or 'one'} from {queue.name} by {who}")
    join(queue, who)
    if count is None:
        one = queue.next(who)
        expected = [] if one is None else [one]
    else:
        expected = queue.next_many(who, count)
    if not expected:
        with raises(shmbroker.Empty, f"{queue.name} has nothing for {who}"):
            real.receive(timeout=0)
        return None
    bodies = [real.receive(timeout=0)] if count is None else real.receive_many(count, timeout=0)
    same("what is received", bodies, [message.body for message in expected])
    for message in expected:
        queue.done(message, "acked")
    return None


# --- consume loops --------------------------------------------------------------------------------


@step(5)
def begin_loop(world: World, random: Random) -> bool | None:
    queue, who = world.some(random), world.who(random)
    if queue is None or len(world.loops) > 5:
        return False
    selector, priority, exclusive = choices.some_selector(random), 0, False
    if queue.groups is not None and queue.groups.is_single:
        priority, exclusive = random.choice([0, 0, 1, 5]), random.random() < 0.2
    real = world.real(who, queue).consume(
        selector=selector, timeout=0, priority=priority, exclusive=exclusive
    )
    loop = Loop(who, queue, selector, real, priority, exclusive)
    world.loops.append(loop)
    go_on(world, loop)
    return None


@step(7)
def next_in_loop(world: World, random: Random) -> bool | None:
    if not world.loops:
        return False
    loop = random.choice(world.loops)
    world.changed.append(loop.queue)
    go_on(world, loop)
    return None


@step(3)
def leave_loop(world: World, random: Random) -> bool | None:
    """What it was in the middle of is given back, unless it was dealt with."""
    if not world.loops:
        return False
    loop = random.choice(world.loops)
    world.changed.append(loop.queue)
    world.tell(f"  of {loop.who} on {loop.queue.name}")
    loop.real.close()  # type: ignore[attr-defined]
    ended(world, loop)
    return None


def go_on(world: World, loop: Loop) -> None:
    queue, who = loop.queue, loop.who
    world.tell(
        f"  of {who} on {queue.name}: {loop.selector or 'all'}, {loop.priority} {loop.exclusive}"
    )
    if queue.is_kept:
        look_on(world, loop)
        return
    if not loop.has_begun and not begun(world, loop):
        return
    if loop.current is not None and loop.current in world.held:
        world.held.remove(loop.current)
        queue.done(loop.current.model, "acked")
    loop.current = None
    expected, real = queue.next(who, loop.selector), next(loop.real, None)
    same("whether there is one", real is not None, expected is not None)
    if expected is None:
        ended(world, loop)
    else:
        loop.current = taken(world, who, queue, expected, real)


def begun(world: World, loop: Loop) -> bool:
    loop.has_begun = True
    groups, who = loop.queue.groups, loop.who
    if groups is None:
        return True
    groups.join(who)
    if loop.exclusive:
        if not groups.may_be_exclusive(who):
            world.loops.remove(loop)
            with raises(shmbroker.InUse, "another one is active"):
                next(loop.real)
            return False
        groups.buckets[0] = Bucket(who, EXCLUSIVE)
    rank = EXCLUSIVE if loop.exclusive else loop.priority
    groups.ranks[who] = max(rank, groups.ranks.get(who, 0))
    return True


def ended(world: World, loop: Loop) -> None:
    """What it has in hand is given back; with the last one of a consumer its groups are let go."""
    world.loops.remove(loop)
    if loop.current is not None and loop.current in world.held:
        world.held.remove(loop.current)
        loop.current.real = None
        loop.queue.give_back(loop.current.model)
    consumes_no_more(world, loop.queue, loop.who)


def consumes_no_more(world: World, queue: QueueModel, who: int) -> None:
    """Unless it does so in another loop."""
    groups = queue.groups
    others = any(each.who == who and each.queue is queue and each.has_begun for each in world.loops)
    if groups is not None and not others:
        groups.ranks.pop(who, None)
        groups.let_go(who)


def look_on(world: World, loop: Loop) -> None:
    """Each has a place of its own, and is not shown a copy of what it has seen."""
    queue = loop.queue
    if not loop.has_begun:
        loop.has_begun = True
        loop.start = loop.place = queue.head
    wanted = SELECTORS[loop.selector] if loop.selector else lambda message: True
    expected = None
    for message in queue.there():
        if message.position < loop.place or message.is_expired:
            continue
        before = message.carried_from
        is_copy = (
            before is not None
            and message.position - before < queue.slots
            and before >= loop.start
            and before in loop.seen
        )
        loop.seen |= {message.position}
        loop.place = message.position + 1
        if not is_copy and wanted(message):
            expected = message
            break
    real = next(loop.real, None)
    same("whether there is one", real is not None, expected is not None)
    if expected is None:
        world.loops.remove(loop)
    else:
        compare(real, expected)


@step(7)
def take_once(world: World, random: Random) -> bool | None:
    """By a loop that is left at once, with what is selected."""
    queue, who = world.some(random, lambda each: not each.is_kept), world.who(random)
    if queue is None:
        return False
    loop = Loop(who, queue, choices.some_selector(random), iter(()))
    loop.real = world.real(who, queue).consume(selector=loop.selector, timeout=0)
    world.loops.append(loop)
    go_on(world, loop)
    if loop in world.loops:
        loop.real.close()  # type: ignore[attr-defined]
        ended(world, loop)
    return None


# --- dealing with what was taken ------------------------------------------------------------------


@step(18)
def deal_with(world: World, random: Random) -> bool | None:
    if not world.held:
        return False
    held = world.held.pop(random.randrange(len(world.held)))
    how = random.choice(["ack", "ack", "give_back", "give_back", "reject", "drop"])
    is_looped = any(loop.current is held for loop in world.loops)
    if how == "drop" and is_looped:
        how = "give_back"
    queue, message, real = held.queue, held.model, held.real
    world.changed.append(queue)
    world.tell(f"  {how} {message.body[:8]!r} of {queue.name} by {held.who}")
    held.real = None
    if how == "drop":
        del real
    else:
        getattr(real, how)()
        if random.random() < 0.1:
            with raises(shmbroker.DeliveryRevoked, "it was dealt with before"):
                real.ack()
    if how == "ack":
        queue.done(message, "acked")
    elif how == "reject":
        queue.reject(message)
    else:
        queue.give_back(message)
    return None


@step(6)
def let_go(world: World, random: Random) -> bool | None:
    queue, who = world.some(random, lambda each: each.groups is not None), world.who(random)
    if queue is None or queue.groups is None:
        return False
    group = random.choice([None, *choices.GROUPS])
    world.tell(f"  {group or 'all'} of {queue.name} by {who}")
    same("how many", world.real(who, queue).let_go(group), queue.groups.let_go(who, group))
    return None


@step(2)
def reconnect(world: World, random: Random) -> bool | None:
    """What it held comes back, and its groups are nobody's."""
    who = world.who(random)
    world.tell(f"  {who}")
    for loop in [loop for loop in world.loops if loop.who == who]:
        world.loops.remove(loop)
        world.brokers[who].close()
        loop.real.close()  # type: ignore[attr-defined]
    world.brokers[who].close()
    world.held = [held for held in world.held if held.who != who]
    world.transactions = [each for each in world.transactions if each.who != who]
    for queue in world.queues:
        queue.leave(who)
    for queue in [queue for queue in world.queues if queue.vanishes_with == who]:
        world.forget(queue)
    world.brokers[who] = world.connect()
    world.changed.extend(world.queues)
    return None
