"""Rules for exchanges and their bindings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import shmbroker
from tests.support.model import BindingModel, ExchangeModel, QueueModel
from tests.support.vhost_rules.world import (
    PARTICIPANTS,
    World,
    anything,
    arguments,
    body_of,
    exchange_names,
    keys,
    kinds,
    patterns,
    properties,
    queue_names,
    sizes,
    who,
)


class ExchangeRules(World):
    """Exchanges, bindings, and publishing through them."""

    @rule(who=who, name=exchange_names, kind=kinds, alternate=st.none() | exchange_names)
    def declare_exchange(self, who: int, name: str, kind: str, alternate: str | None) -> None:
        broker, known = self.brokers[who], self.model.exchanges.get(name)
        other = self.model.exchanges.get(alternate) if alternate else None
        if alternate and other is None:
            with pytest.raises(shmbroker.NotFound, match=f"'{alternate}'"):
                broker.declare_exchange(name, kind, alternate=alternate)
        elif known and (known.kind, known.alternate) != (kind, other):
            with pytest.raises(shmbroker.DeclaredDifferently, match=f"'{name}'"):
                broker.declare_exchange(name, kind, alternate=alternate)
        else:
            exchange = broker.declare_exchange(name, kind, alternate=alternate)
            assert (exchange.name, exchange.kind) == (name, kind)
            if known is None:
                self.model.exchanges[name] = ExchangeModel(name, kind, other)

    @rule(who=who, name=exchange_names, force=st.booleans())
    def delete_exchange(self, who: int, name: str, force: bool) -> None:
        broker, known = self.brokers[who], self.model.exchanges.get(name)
        if known is None:
            with pytest.raises(shmbroker.NotFound, match=f"'{name}'"):
                broker.delete_exchange(name, force=force)
            return
        in_use = any(self.model.bindings_of(known)) or self.model.is_alternate(known)
        if in_use and not force:
            with pytest.raises(shmbroker.InUse, match="force"):
                broker.delete_exchange(name)
            return
        handle = self.brokers[(who + 1) % PARTICIPANTS].exchange(name)
        broker.delete_exchange(name, force=force)
        self.model.forget(known)
        with pytest.raises(shmbroker.NotFound, match="deleted"):
            handle.publish(b"")

    def destination(self, name: str, to: str) -> QueueModel | ExchangeModel | None:
        return (self.model.queues if to == "queue" else self.model.exchanges).get(name)

    @precondition(lambda self: self.model.exchanges)
    @rule(
        who=who,
        number=anything,
        destination=queue_names | exchange_names,
        key=patterns,
        arguments=arguments,
        match=st.sampled_from(["all", "any"]),
        removes=st.sampled_from([False, False, False, True]),
    )
    def bind(
        self,
        who: int,
        number: int,
        destination: str,
        key: str,
        arguments: dict[str, Any],
        match: Any,
        removes: bool,
    ) -> None:
        sources = list(self.model.exchanges.values())
        source = sources[number % len(sources)]
        to: Any = "queue" if destination in "abc" else "exchange"
        call = self.brokers[who].unbind if removes else self.brokers[who].bind
        goal = self.destination(destination, to)
        same = []
        if goal is not None:
            binding = BindingModel(source, goal, key, arguments, match)
            same = [each for each in self.model.bindings if each.is_same(binding)]
        if goal is None or (removes and not same):
            with pytest.raises(shmbroker.NotFound):
                call(source.name, destination, key, arguments=arguments, match=match, to=to)
            return
        call(source.name, destination, key, arguments=arguments, match=match, to=to)
        if removes:
            self.model.bindings.remove(same[0])
        elif not same:
            self.model.bindings.append(binding)

    @rule(
        who=who,
        name=exchange_names | st.just(""),
        size=sizes,
        key=keys | queue_names,
        properties=properties,
        mandatory=st.booleans(),
    )
    def publish_to_exchange(
        self,
        who: int,
        name: str,
        size: int,
        key: str,
        properties: dict[str, Any],
        mandatory: bool,
    ) -> None:
        body = body_of(size)
        exchange = self.model.exchanges.get(name)
        if name and exchange is None:
            with pytest.raises(shmbroker.NotFound, match=f"'{name}'"):
                self.brokers[who].exchange(name)
            return
        route = self.model.route(exchange, key, properties) if exchange else []
        if not name and key in self.model.queues:
            route = [self.model.queues[key]]
        real = self.brokers[who].exchange(name)

        def call() -> int:
            return real.publish(
                body, key=key, properties=properties, mandatory=mandatory, timeout=0
            )

        if not route and mandatory:
            with pytest.raises(shmbroker.Unroutable, match="mandatory"):
                call()
        elif all(queue.room for queue in route):
            assert call() == len(route)
            for queue in route:
                self.use(who, queue, as_="producer")
                queue.publish(body, key, properties)
        else:
            with pytest.raises(shmbroker.QueueFull) as told:
                call()
            self.published_to_some(who, route, (body, key, properties), str(told.value))

    def published_to_some(
        self, who: int, route: list[QueueModel], content: tuple[Any, ...], text: str
    ) -> None:
        """One was full: those before it have the message, and the error says how many."""
        had = 0
        for model in route:
            queue = self.brokers[who].queue(model.name)
            if queue.statistics().published > len(model.log):
                model.publish(*content)
                had += 1
                self.use(who, model, as_="producer")
        assert (f"({had} queues have the message)" in text) == (had > 0)
        full = [model for model in route if f"'{model.name}' is full" in text]
        assert len(full) == 1
        self.use(who, full[0], as_="producer")
