"""Steps: transactions, which are open for a while."""

from __future__ import annotations

from random import Random

import shmbroker
from tests.support.settings_model import choices
from tests.support.settings_model.message import NOT_TODAY
from tests.support.settings_model.publishing import message_of
from tests.support.settings_model.queue import SCHEDULED
from tests.support.settings_model.transaction import TransactionModel
from tests.support.settings_model.world import World, counts_bytes, raises, same, step


@step(3)
def begin(world: World, random: Random) -> bool | None:
    if len(world.transactions) >= 3:
        return False
    who = world.who(random)
    world.transactions.append(TransactionModel(who, world.brokers[who].transaction()))
    return None


@step(8)
def add(world: World, random: Random) -> bool | None:
    if not world.transactions:
        return False
    transaction = random.choice(world.transactions)
    who, real = transaction.who, transaction.real
    mine = [each for each in world.held if each.who == who and each.queue.vanishes_with is None]
    if mine and random.random() < 0.5:
        held = random.choice(mine)
        world.held.remove(held)
        world.tell(f"  acknowledge {held.model.body[:8]!r} of {held.queue.name}")
        real.ack(held.real)
        transaction.acks.append((held.queue, held.model))
        transaction.order.append(held.queue)
        return None
    queue = world.some(random, lambda each: not counts_bytes(each) and each.vanishes_with is None)
    if queue is None:
        return False
    options, message_id = choices.some_options(random), choices.some_id(random)
    body, target = world.new_body(random), world.real(who, queue)
    if random.random() < 0.1 and not transaction.schedules:
        world.tell(f"  {body[:8]!r} later to {queue.name}")
        if len(queue.scheduled) >= SCHEDULED:
            with raises(shmbroker.QueueFull, "the schedule is full"):
                real.publish(target, body, deliver_after=NOT_TODAY, **options)
            return None
        real.publish(target, body, deliver_after=NOT_TODAY, **options)
        transaction.schedules.append((queue, message_of(body, options)))
        return None
    world.tell(f"  {body[:8]!r} to {queue.name}: {options} {message_id or ''}")
    real.publish(target, body, message_id=message_id, **options)
    message = message_of(body, options, message_id)
    message.ttl = queue.lifetime(message.ttl)
    transaction.publishes.append((queue, message))
    transaction.order.append(queue)
    return None


@step(4)
def commit(world: World, random: Random) -> bool | None:
    if not world.transactions:
        return False
    transaction = random.choice(world.transactions)
    world.changed.extend(transaction.order)
    refusal = transaction.commit()
    if refusal is None:
        transaction.real.commit(timeout=0)
        same("what is left of it", len(transaction.real), 0)
        world.transactions.remove(transaction)
        return None
    world.tell("  in vain")
    with raises(refusal, "a queue has no room for the transaction, or never has"):
        transaction.real.commit(timeout=0)
    return None


@step(3)
def roll_back(world: World, random: Random) -> bool | None:
    if not world.transactions:
        return False
    transaction = world.transactions.pop(random.randrange(len(world.transactions)))
    world.changed.extend(transaction.order)
    transaction.roll_back()
    transaction.real.rollback()
    with raises(shmbroker.TransactionEnded, "it is over"):
        transaction.real.commit()
    return None
