"""Steps: making queues, in each way that there is, and what is done with them as a whole."""

from __future__ import annotations

from collections import Counter
from random import Random
from threading import Thread
from typing import Any

import shmbroker
from shmbroker.ipc.queue.export import exported, imported
from shmbroker.ipc.settings.setting import DEFAULTS
from tests.support.settings_model import choices
from tests.support.settings_model.exchange import EXCHANGES
from tests.support.settings_model.message import NOT_TODAY, MessageModel
from tests.support.settings_model.queue import SLOTS, QueueModel
from tests.support.settings_model.taking import consumes_no_more, join
from tests.support.settings_model.world import World, counts_bytes, raises, same, step

QUEUES = 5
"""Those for the dead not counted."""

PATIENCE = 60.0


def is_alive(queue: QueueModel) -> bool:
    """None of those for the dead, which have room for all and must not be filled."""
    return queue.slots < 4096


# --- making them ----------------------------------------------------------------------------------


@step(12)
def declare(world: World, random: Random) -> bool | None:
    if sum(map(is_alive, world.queues)) >= QUEUES:
        return False
    world.names += 1
    name, settings, who = f"q{world.names}", choices.some_settings(random), world.who(random)
    broker, slots = world.brokers[who], random.choice([SLOTS, SLOTS, 16])
    dlqs = some_dlqs(world, random, name, settings)
    named = settings | {kind: dlq.name for kind, dlq in dlqs.items()}
    world.tell(f"  {name} by {who}: {slots} {named}")
    how = random.choice(["declared", "declared", "pattern", "temporary", "subscription"])
    if counts_bytes(QueueModel("", settings)):
        how = "declared"
    if how == "temporary":
        name = broker.temporary_queue(slots=slots, **named).name
    elif how == "subscription":
        subscribe(world, random, who, name, slots, named)
        name = f"sub.{name}"
    else:
        given = by_pattern(world, random, who, name, named) if how == "pattern" else {}
        rest = {key: value for key, value in named.items() if key not in given}
        for _ in range(2):  # twice is once
            broker.declare_queue(name, slots=slots, **rest)
        explain(broker.queue(name), rest, given, f"pattern '{name}.#'")
        if given:
            broker.remove_settings("#")
    made = world.add(name, settings, slots=slots, **dlqs)
    if how == "subscription":
        world.routes.bindings.append(("x", "a.*", made))
    if how in ("temporary", "subscription") and not is_durable(name):
        made.vanishes_with = who
    return None


def is_durable(name: str) -> bool:
    """Of subscriptions every other one."""
    return name.startswith("sub.") and int(name[5:]) % 2 == 0


def subscribe(
    world: World, random: Random, who: int, name: str, slots: int, settings: dict[str, Any]
) -> None:
    """Nobody else may, and it is known by its settings."""
    durable = is_durable(f"sub.{name}")
    options: dict[str, Any] = {"exchange": "x", "key": "a.*", "durable": durable, "slots": slots}
    broker = world.brokers[who]
    broker.subscription(name, **options, **settings)
    with raises(shmbroker.DeclaredDifferently, "another key"):
        broker.subscription(name, **{**options, "key": "b.*"}, **settings)
    with raises(shmbroker.SubscriptionTaken, "it has a consumer"):
        world.brokers[who - 1].subscription(name, **options, **settings)


def some_dlqs(
    world: World, random: Random, name: str, settings: dict[str, Any]
) -> dict[str, QueueModel]:
    dlqs: dict[str, QueueModel] = {}
    if counts_bytes(QueueModel("", settings)):
        return dlqs
    kinds = ["expiry_queue"] if "non_destructive" in settings else ["expiry_queue", "dead_letter"]
    for kind in kinds:
        if random.random() < 0.4:
            own = choices.dlq_settings(random)
            world.brokers[0].declare_queue(f"{name}.{kind}", slots=4096, **own)
            dlqs[kind] = world.add(f"{name}.{kind}", own, slots=4096)
    return dlqs


def by_pattern(
    world: World, random: Random, who: int, name: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Some of them, and a less specific pattern that must not win."""
    given = {key: value for key, value in settings.items() if random.random() < 0.5}
    if not given:
        return given
    world.brokers[who].settings("#", **{key: DEFAULTS[key] for key in given})
    world.brokers[who].settings(f"{name}.#", **given)
    world.tell(f"  of these by pattern: {sorted(given)}")
    return given


def explain(
    real: shmbroker.Queue, declared: dict[str, Any], given: dict[str, Any], pattern: str
) -> None:
    for name, told in real.explain().items():
        source = "declared" if name in declared else pattern if name in given else "default"
        same(f"where {name} comes from", told.source, source)
        expected = {**DEFAULTS, **given, **declared}
        if name in expected and source != "default":
            same(f"the setting {name}", told.value, expected[name])


@step(4)
def bind(world: World, random: Random) -> bool | None:
    queue = world.some(
        random,
        lambda each: is_alive(each) and not counts_bytes(each) and each.vanishes_with is None,
    )
    if queue is None:
        return False
    exchange, pattern = random.choice(EXCHANGES), random.choice(choices.PATTERNS)
    binding, broker = (exchange, pattern, queue), world.brokers[world.who(random)]
    world.tell(f"  {exchange} {pattern} {queue.name}")
    if binding in world.routes.bindings:
        broker.unbind(exchange, queue.name, pattern)
        world.routes.bindings.remove(binding)
    else:
        broker.bind(exchange, queue.name, pattern)
        world.routes.bindings.append(binding)
    return None


@step(2)
def divert(world: World, random: Random) -> bool | None:
    source, to = random.sample(EXCHANGES, 2)
    pattern, exclusive = random.choice(choices.PATTERNS), random.random() < 0.4
    broker, diverts = world.brokers[world.who(random)], world.routes.diverts
    world.tell(f"  {source} to {to}: {pattern} {exclusive}")
    known = diverts.get((source, pattern, to))
    if known is None:
        broker.divert(source, to, key=pattern, exclusive=exclusive)
        diverts[source, pattern, to] = exclusive
    elif known != exclusive:
        with raises(shmbroker.DeclaredDifferently, "it is diverted otherwise"):
            broker.divert(source, to, key=pattern, exclusive=exclusive)
    else:
        broker.undivert(source, to, key=pattern)
        del diverts[source, pattern, to]
    return None


# --- all of it ------------------------------------------------------------------------------------


@step(3)
def expire(world: World, random: Random) -> bool | None:
    queue = world.some(random)
    if queue is None:
        return False
    world.tell(f"  {queue.name}")
    same("how many", world.real(world.who(random), queue).expire(), queue.expire())
    return None


@step(2)
def purge(world: World, random: Random) -> bool | None:
    queue = world.some(random)
    if queue is None:
        return False
    world.tell(f"  {queue.name}")
    same("how many", world.real(world.who(random), queue).purge(), queue.purge())
    return None


@step(3)
def pause(world: World, random: Random) -> bool | None:
    queue = world.some(random, lambda each: each.is_paused or random.random() < 0.3)
    if queue is None:
        return False
    world.tell(f"  {queue.name}")
    real = world.real(world.who(random), queue)
    if queue.is_paused:
        real.resume()
    else:
        real.pause()
    queue.is_paused = not queue.is_paused
    return None


@step(6)
def pass_over(world: World, random: Random) -> bool | None:
    source, to = world.some(random), world.some(random, lambda each: not counts_bytes(each))
    if source is None or to is None or source is to:
        return False
    limit, selector = random.choice([None, 1, 3]), choices.some_selector(random)
    moves, who = random.random() < 0.6, world.who(random)
    world.tell(f"  {'move' if moves else 'copy'} {source.name} to {to.name}: {limit} {selector}")
    real = world.real(who, source)
    verb = real.move_to if moves else real.copy_to
    expected = source.pass_over(to, limit, selector, moves)
    same("how many", verb(world.real(who, to), limit, selector), expected)
    return None


@step(2)
def export(world: World, random: Random) -> bool | None:
    """And import into another one, as far as there is room."""
    source, to = world.some(random), world.some(random, lambda each: not counts_bytes(each))
    if source is None or to is None or source is to:
        return False
    world.tell(f"  {source.name} to {to.name}")
    there = [message for message in source.there() if not message.is_expired]
    done = 0
    while done < len(there) and to.offer(there[done]):
        done += 1
    lines = list(exported(world.real(world.who(random), source)))
    same("how many lines", len(lines), len(there))
    real = world.real(world.who(random), to)
    if done == len(there):
        same("how many", imported(real, lines, timeout=0), done)
    else:
        with raises(shmbroker.QueueFull, f"{to.name} has no room for all"):
            imported(real, lines, timeout=0)
    return None


@step(3)
def retry(world: World, random: Random) -> bool | None:
    queue = world.some(random, lambda each: not is_alive(each) and bool(each.there()))
    if queue is None:
        return False
    who, limit = world.who(random), random.choice([None, 1, 2])
    world.tell(f"  {queue.name} by {who}: {limit}")
    there, sent, stayed, held = len(queue.there()), 0, Counter[str](), list[MessageModel]()
    join(queue, who)
    for _ in range(there if limit is None else min(there, limit)):
        message = queue.next(who)
        if message is None:
            break
        why = sent_back(world, message)
        if why:
            stayed[why] += 1
            held.append(message)
        else:
            sent += 1
            queue.done(message, "acked")
    real = world.real(who, queue).retry(limit)
    same("what is retried", (real.sent, real.stayed), (sent, dict(stayed)))
    for message in reversed(held):
        queue.untake(message)
    consumes_no_more(world, queue, who)
    return None


def sent_back(world: World, message: MessageModel) -> str:
    origin = message.properties.get("dead.origin")
    if origin is None:
        return "it does not say where it comes from"
    to = next((queue for queue in world.queues if queue.name == origin), None)
    if to is None:
        return f"there is no queue {origin!r}"
    world.changed.append(to)
    again = message.copy()
    again.ttl = None
    again.properties = {
        name: value
        for name, value in message.properties.items()
        if name == "dead.count" or not name.startswith("dead.")
    }
    return "" if to.offer(again, returned=True) else f"queue {origin!r} is full"


@step(2)
def request(world: World, random: Random) -> bool | None:
    """One asks and waits; another one takes the request, and replies."""
    probe = MessageModel(b"")
    queue = world.some(
        random,
        lambda each: (
            not each.is_kept
            and not each.is_paused
            and not counts_bytes(each)
            and each.groups is None
            and not each.ready()
            and each.has_room(probe)
            and each.lifetime(None) in (None, NOT_TODAY)
        ),
    )
    if queue is None:
        return False
    who, other = random.sample(range(len(world.brokers)), 2)
    world.tell(f"  to {queue.name} by {who}, answered by {other}")
    body, replies = world.new_body(random), list[bytes]()
    real = world.real(who, queue)
    asks = Thread(target=lambda: replies.append(real.request(body, timeout=PATIENCE).body))
    asks.start()
    message = world.real(other, queue).get(timeout=PATIENCE)
    same("what is asked", message.body, body)
    message.reply(body + b"!", timeout=PATIENCE)
    message.ack()
    asks.join()
    same("the reply", replies, [body + b"!"])
    probe.body = body
    queue.place(probe)
    queue.done(probe, "acked")
    return None
