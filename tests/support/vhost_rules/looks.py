"""Rules that look: all that can be seen is what the model says."""

from __future__ import annotations

from hypothesis.stateful import rule

from tests.support.model import QueueModel
from tests.support.vhost_rules.world import (
    World,
    who,
)


class LookRules(World):
    """Listing and browsing."""

    @rule(who=who)
    def look(self, who: int) -> None:
        broker = self.brokers[who]
        infos = {info.name: info for info in broker.queues()}
        assert sorted(infos) == sorted(self.model.queues)
        for name, model in self.model.queues.items():
            self.look_at_queue(who, model)
            info = infos[name]
            assert (info.slots, info.depth, info.published, info.paused) == (
                model.slots,
                len(model.there()),
                len(model.log),
                model.paused,
            )
            assert (info.consumers, info.producers) == (
                len(model.consumers),
                len(model.producers),
            )

    def look_at_queue(self, who: int, model: QueueModel) -> None:
        queue, there = self.brokers[who].queue(model.name), model.there()
        told = queue.statistics()
        returned = model.given_back
        assert (told.depth, told.published, told.acked) == (
            len(there),
            len(model.log),
            model.acked,
        )
        assert (told.redelivered, told.dead_lettered, told.dropped) == (
            returned,
            model.rejected,
            model.dropped,
        )
        assert told.taken == len(model.held())
        assert told.delivered == model.acked + model.rejected + told.taken + returned
        assert (told.bytes == 0) == (not there)
        assert told.bytes >= sum(len(message.body) for message in there)
        assert told.is_paused == model.paused
        assert [
            (
                message.position,
                message.body,
                message.key,
                message.properties,
                message.deliveries,
                message.is_taken,
            )
            for message in queue.browse()
        ] == [
            (
                message.position,
                message.body,
                message.key,
                message.properties,
                message.deliveries,
                message.state == "held",
            )
            for message in there
        ]

    @rule(who=who)
    def look_at_exchanges(self, who: int) -> None:
        broker = self.brokers[who]
        listed = [
            (each.name, each.kind, each.alternate, each.bindings) for each in broker.exchanges()
        ]
        assert listed == sorted(
            (
                model.name,
                model.kind,
                model.alternate.name
                if model.alternate and not model.alternate.is_deleted
                else None,
                sum(each.source is model for each in self.model.bindings),
            )
            for model in self.model.exchanges.values()
        )
        told = [
            (each.exchange, each.destination, each.to, each.key, each.arguments, each.match)
            for each in broker.bindings()
        ]
        expected = [
            (
                each.source.name,
                each.destination.name,
                "queue" if isinstance(each.destination, QueueModel) else "exchange",
                each.key,
                each.arguments,
                each.match,
            )
            for each in self.model.bindings
        ]
        assert sorted(told, key=repr) == sorted(expected, key=repr)

    @rule(who=who)
    def look_at_participants(self, who: int) -> None:
        listed = self.brokers[who].participants()
        assert {each.id: each.name for each in listed} == {
            broker.participant: f"p{number}" for number, broker in enumerate(self.brokers)
        }
        assert {each.state for each in listed} == {"live"}
        for each in listed:
            number = int(each.name[1:])
            assert set(each.queues) == {
                name for name, model in self.model.queues.items() if number in model.users
            }

    def look_at_everything(self) -> None:
        self.look(0)
        self.look_at_exchanges(1)
        self.look_at_participants(2)
