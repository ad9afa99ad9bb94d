"""After each step: all that can be seen of the queues that it changed is what the model says."""

from __future__ import annotations

from random import Random

from tests.support.settings_model.queue import QueueModel
from tests.support.settings_model.taking import told
from tests.support.settings_model.world import World, same

COUNTS = [
    "expired", "dead_lettered", "dropped", "redelivered", "replaced", "carried", "duplicates",
    "acked",
]  # fmt: skip


def look(world: World, random: Random) -> None:
    for queue in {*world.changed, *world.queues[:1]}:
        if queue in world.queues:
            look_at(world, world.who(random), queue)


def look_at_all(world: World) -> None:
    for queue in world.queues:
        look_at(world, 0, queue)


def look_at(world: World, who: int, queue: QueueModel) -> None:
    real, name = world.real(who, queue), queue.name
    there = queue.there()
    found = list(real.browse())
    same(
        f"what is in {name}",
        [(each.position, each.body, each.is_taken, each.deliveries) for each in found],
        [(each.position, each.body, each.state == "held", each.deliveries) for each in there],
    )
    for each, message in zip(found, there, strict=True):
        same(
            f"message {each.position} of {name}",
            (each.key, each.priority, told(each.properties)),
            (message.key, message.priority, message.properties),
        )
    numbers = real.statistics()
    same(f"what {name} has seen", numbers.published, queue.published)
    for count in COUNTS:
        same(f"{count} of {name}", getattr(numbers, count), queue.counts[count])
    same(f"whether {name} is paused", numbers.is_paused, queue.is_paused)
    same(
        f"what is scheduled in {name}",
        sorted((each.body, each.deliveries, each.key or "") for each in real.scheduled()),
        sorted((each.body, each.deliveries, each.key or "") for each in queue.scheduled),
    )
    same(f"how many are scheduled in {name}", numbers.scheduled, len(queue.scheduled))
    waiting = [level.waiting for level in reversed(numbers.levels)]
    levels = [queue.level(message) for message in queue.ready()]
    same(f"the levels of {name}", waiting, [levels.count(each) for each in range(queue.levels)])
    if queue.is_last_value:
        look_at_values(world, who, queue)
    if queue.groups is not None:
        owners = {
            world.brokers[bucket.owner].participant for bucket in queue.groups.buckets.values()
        }
        known = {each.participant for each in real.groups() if each.participant is not None}
        same(f"who has groups of {name}", known, owners)


def look_at_values(world: World, who: int, queue: QueueModel) -> None:
    for key in {message.key for message in queue.there() if message.key is not None} | {"k0"}:
        newest = queue.newest(key)
        expected = None if newest is None or newest.is_expired else newest.body
        value = world.real(who, queue).value(key)
        same(f"the value of {key} in {queue.name}", value and value.body, expected)
