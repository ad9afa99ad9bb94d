"""The whole Python API against a plain model of it: whatever is done, in whatever order.

Three participants of one process do things at random; after each the answer, and now and then all
that can be looked at, is what the model says.  The same things are done in each run; more, and
others each time, with SHMBROKER_MODEL_EXAMPLES=10000.  What fails is printed as a program.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import shmbroker
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.model import BindingModel, ExchangeModel, MessageModel, QueueModel, VhostModel

PARTICIPANTS = 3
EXAMPLES = int(os.environ.get("SHMBROKER_MODEL_EXAMPLES", "0"))
LARGE = 70_000  # more than a receiver has room for at first

who = st.integers(0, PARTICIPANTS - 1)
queue_names = st.sampled_from(["a", "b", "c"])
exchange_names = st.sampled_from(["w", "x", "y", "z"])
kinds = st.sampled_from(["direct", "topic", "fanout", "headers"])
sizes = st.sampled_from([0, 1, 2, 63, 64, 5000, LARGE])
keys = st.sampled_from(["", "a", "a.b", "b", "a.b.a", "ü"])
patterns = st.sampled_from(["", "a", "#", "*", "a.*", "#.b", "a.#.a", "*.b", "ü"])
properties = st.sampled_from([{}, {"n": 1}, {"n": 1, "t": "x"}, {"t": "y"}, {"n": {"deep": [1]}}])
arguments = st.sampled_from([{}, {"n": 1}, {"t": "x"}, {"n": None}, {"n": 1, "t": "x"}, {"x-m": 1}])
anything = st.integers(0, 1000)


def body_of(size: int, tag: int = 0) -> bytes:
    return bytes([size % 251 ^ tag]) * size


class Held:
    """A message in somebody's hand."""

    def __init__(self, who: int, queue: QueueModel, model: MessageModel, real: Any) -> None:
        self.who, self.queue, self.model, self.real = who, queue, model, real


class Watch:
    """A subscription."""

    def __init__(self, who: int, queue: QueueModel, number: int, lossy: bool, real: Any) -> None:
        self.who, self.queue, self.number, self.lossy, self.real = who, queue, number, lossy, real
        self.position, self.missed, self.unreleased = real.position, 0, 0


class Lent:
    """A loan."""

    def __init__(self, who: int, queue: QueueModel, real: Any, content: tuple[Any, ...]) -> None:
        self.who, self.queue, self.real, self.content = who, queue, real, content


class Machine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.stack = ExitStack()
        self.vhost = self.stack.enter_context(vhost_for_a_while())
        vhosts.create(self.vhost, arena_bytes=32 << 20)
        self.model = VhostModel()
        self.brokers = [self.connect(each) for each in range(PARTICIPANTS)]
        self.held: list[Held] = []
        self.watches: list[Watch] = []
        self.loans: list[Lent] = []
        self.numbers = 0

    def connect(self, who: int) -> shmbroker.Broker:
        return shmbroker.connect(f"shm://{self.vhost}", name=f"p{who}")

    def teardown(self) -> None:
        if not hasattr(self, "stack"):
            return
        try:
            self.look_at_everything()
            for broker in self.brokers:
                broker.close()
            vhosts.delete(self.vhost)
            left = [name for name in os.listdir("/dev/shm") if self.vhost in name]  # noqa: PTH208
            assert left == []
        finally:
            for broker in self.brokers:
                broker.close()
            self.stack.close()

    # --- queues -------------------------------------------------------------------------------

    @rule(who=who, name=queue_names, slots=st.sampled_from([4, 4, 8]))
    def declare_queue(self, who: int, name: str, slots: int) -> None:
        known = self.model.queues.get(name)
        if known is not None and known.slots != slots:
            with pytest.raises(shmbroker.DeclaredDifferently, match=f"'{name}'"):
                self.brokers[who].declare_queue(name, slots=slots)
            return
        queue = self.brokers[who].declare_queue(name, slots=slots)
        assert (queue.name, queue.slots) == (name, slots)
        if known is None:
            self.model.queues[name] = QueueModel(name, slots)

    @rule(who=who, name=queue_names, force=st.sampled_from([False, False, True]))
    def delete_queue(self, who: int, name: str, force: bool) -> None:
        known = self.model.queues.get(name)
        broker = self.brokers[who]
        if known is None:
            with pytest.raises(shmbroker.NotFound, match=f"'{name}'"):
                broker.delete_queue(name, force=force)
            return
        if known.users - {who} and not force:
            with pytest.raises(shmbroker.InUse, match="force"):
                broker.delete_queue(name)
            return
        handles = [each.queue(name) for each in self.brokers]
        broker.delete_queue(name, force=force)
        self.model.forget(known)
        for queue in handles:
            with pytest.raises(shmbroker.NotFound, match="deleted"):
                queue.publish(b"", timeout=0)
            with pytest.raises(shmbroker.NotFound, match="deleted"):
                queue.get(timeout=1)
            with pytest.raises(shmbroker.NotFound, match="deleted"):
                queue.statistics()
        self.drop_uses(lambda use: use.queue is known, shmbroker.NotFound)

    def drop_uses(self, is_gone: Any, error: type[Exception]) -> None:
        """What is in somebody's hand of a queue or connection that is no more says so."""
        for held in [each for each in self.held if is_gone(each)]:
            self.held.remove(held)
            with pytest.raises(error):
                held.real.ack()
        for watch in [each for each in self.watches if is_gone(each)]:
            self.watches.remove(watch)
            watch.queue.gates.pop(watch.number, None)
            with pytest.raises(error):
                watch.real.get(timeout=1)
            watch.real.close()
        for lent in [each for each in self.loans if is_gone(each)]:
            self.loans.remove(lent)
            with pytest.raises(error):
                lent.real.publish(timeout=0)

    def some_queue(self, number: int) -> QueueModel:
        queues = list(self.model.queues.values())
        return queues[number % len(queues)]

    def has_queues(self) -> bool:
        return bool(self.model.queues)

    def use(self, who: int, queue: QueueModel, *, as_: str = "") -> shmbroker.Queue:
        queue.users.add(who)
        if as_:
            (queue.consumers if as_ == "consumer" else queue.producers).add(who)
        return self.brokers[who].queue(queue.name)

    # --- publishing ---------------------------------------------------------------------------

    @precondition(has_queues)
    @rule(
        who=who,
        number=anything,
        size=sizes,
        key=keys,
        properties=properties,
        how=st.integers(0, 3),
    )
    def publish(
        self, who: int, number: int, size: int, key: str, properties: dict[str, Any], how: int
    ) -> None:
        body = body_of(size)
        model = self.some_queue(number)
        queue = self.use(who, model, as_="producer")
        if how == 0:
            key, properties = "", {}
        buffer: Any = bytearray(body) if how == 1 else memoryview(body) if how == 2 else body
        timeout = 0.001 if how == 3 else 0

        def call() -> int:
            if how == 0:
                return queue.publish_nowait(buffer)
            return queue.publish(buffer, key=key, properties=properties, timeout=timeout)

        if model.room == 0:
            with pytest.raises(shmbroker.QueueFull, match=f"'{model.name}' is full"):
                call()
        else:
            assert call() == model.publish(body, key, properties)

    @precondition(has_queues)
    @rule(who=who, number=anything, several=st.lists(sizes, max_size=10))
    def publish_many(self, who: int, number: int, several: list[int]) -> None:
        model = self.some_queue(number)
        bodies = [body_of(size, tag) for tag, size in enumerate(several)]
        queue = self.brokers[who].queue(model.name)
        if bodies:
            self.use(who, model, as_="producer")
        fit = bodies[: model.room]
        assert queue.publish_many(bodies, timeout=0) == len(fit)
        for body in fit:
            model.publish(body, None, {})

    @precondition(lambda self: self.has_queues() and len(self.loans) < 3)
    @rule(who=who, number=anything, size=sizes, key=keys, properties=properties)
    def loan(self, who: int, number: int, size: int, key: str, properties: dict[str, Any]) -> None:
        model, body = self.some_queue(number), body_of(size)
        queue = self.use(who, model, as_="producer")
        loan = queue.loan(len(body), key=key, properties=properties)
        loan.view[:] = body
        self.loans.append(Lent(who, model, loan, (body, key, properties)))

    @precondition(lambda self: self.loans)
    @rule(number=anything, how=st.sampled_from(["publish", "publish", "drop"]))
    def finish_loan(self, number: int, how: str) -> None:
        lent = self.loans[number % len(self.loans)]
        if how == "drop":
            lent.real.drop()
        elif lent.queue.room == 0:
            with pytest.raises(shmbroker.QueueFull):
                lent.real.publish(timeout=0)
            return
        else:
            assert lent.real.publish(timeout=0) == lent.queue.publish(*lent.content)
        self.loans.remove(lent)
        with pytest.raises(shmbroker.Error):
            lent.real.publish(timeout=0)

    # --- taking -------------------------------------------------------------------------------

    def took(self, who: int, queue: QueueModel, model: MessageModel, real: Any) -> None:
        assert real.position == model.position
        assert (real.body, real.key) == (model.body, model.key)
        assert bytes(real.view) == model.body
        assert real.properties == model.properties
        assert real.deliveries == model.deliveries
        model.state, model.holder = "held", who
        self.held.append(Held(who, queue, model, real))

    @precondition(has_queues)
    @rule(who=who, number=anything, timeout=st.sampled_from([0, 0, 0.001]))
    def get(self, who: int, number: int, timeout: float) -> None:
        model = self.some_queue(number)
        queue = self.use(who, model, as_="consumer")
        run = model.next_run(1)
        if not run:
            with pytest.raises(shmbroker.Empty):
                queue.get(timeout=timeout)
            return
        self.took(who, model, run[0], queue.get(timeout=timeout))

    @precondition(has_queues)
    @rule(who=who, number=anything, count=st.integers(1, 9))
    def get_many(self, who: int, number: int, count: int) -> None:
        model = self.some_queue(number)
        queue = self.use(who, model, as_="consumer")
        run = model.next_run(count)
        if not run:
            with pytest.raises(shmbroker.Empty):
                queue.get_many(count, timeout=0)
            return
        messages = queue.get_many(count, timeout=0)
        assert len(messages) == len(run)
        for expected, message in zip(run, messages, strict=True):
            self.took(who, model, expected, message)

    @precondition(lambda self: self.held)
    @rule(
        number=anything,
        how=st.sampled_from(["ack", "ack", "with", "give_back", "reject", "drop", "raise"]),
    )
    def deal_with(self, number: int, how: str) -> None:
        held = self.held.pop(number % len(self.held))
        message, queue = held.real, held.queue
        match how:
            case "ack":
                message.ack()
            case "give_back":
                message.give_back()
            case "reject":
                message.reject()
            case "with":
                with message:
                    pass
            case "raise":
                with pytest.raises(RuntimeError), message:
                    raise RuntimeError
            case "drop":
                del held.real, message
        if how in ("ack", "with"):
            held.model.done()
            queue.acked += 1
        elif how == "reject":
            held.model.done()
            queue.rejected += 1
        else:
            held.model.given_back()
            queue.given_back += 1
        if how != "drop":
            with pytest.raises(shmbroker.DeliveryRevoked):
                message.ack()

    @precondition(has_queues)
    @rule(who=who, number=anything)
    def receive(self, who: int, number: int) -> None:
        model = self.some_queue(number)
        queue = self.use(who, model, as_="consumer")
        run = model.next_run(1)
        if not run:
            with pytest.raises(shmbroker.Empty):
                queue.receive(timeout=0)
            return
        assert queue.receive(timeout=0) == run[0].body
        run[0].done()
        model.acked += 1

    @precondition(has_queues)
    @rule(who=who, number=anything, count=st.integers(1, 9))
    def receive_many(self, who: int, number: int, count: int) -> None:
        model = self.some_queue(number)
        queue = self.use(who, model, as_="consumer")
        run = model.next_run(count)
        if not run:
            with pytest.raises(shmbroker.Empty):
                queue.receive_many(count, timeout=0)
            return
        received = queue.receive_many(count, timeout=0)
        if sum(len(message.body) for message in run) <= 1 << 16:
            assert len(received) == len(run)
        assert received
        assert received == [message.body for message in run[: len(received)]]
        for message in run[: len(received)]:
            message.done()
            model.acked += 1

    @precondition(has_queues)
    @rule(who=who, number=anything, prefetch=st.integers(1, 3), stop=st.integers(0, 5))
    def consume(self, who: int, number: int, prefetch: int, stop: int) -> None:
        """Left in the middle of a message, which then comes back with all that were prefetched."""
        model = self.some_queue(number)
        queue = self.use(who, model, as_="consumer")
        consuming = queue.consume(timeout=0, prefetch=prefetch)
        left: list[MessageModel] = []
        for count in range(stop + 1):
            if not left:
                left = model.next_run(prefetch)
            message = next(consuming, None)
            if not left:
                assert message is None
                return
            assert message is not None
            expected = left[0]
            assert (message.position, message.body) == (expected.position, expected.body)
            if count == stop:
                break
            left.pop(0).done()  # when the next is asked for
            model.acked += 1
        del message
        consuming.close()
        for each in left:
            each.given_back()
            model.given_back += 1

    # --- managing -----------------------------------------------------------------------------

    @precondition(has_queues)
    @rule(who=who, number=anything)
    def purge(self, who: int, number: int) -> None:
        model = self.some_queue(number)
        ready = model.ready()
        assert self.use(who, model).purge() == len(ready)
        for message in ready:
            message.done()
        model.dropped += len(ready)

    @precondition(has_queues)
    @rule(who=who, number=anything, paused=st.sampled_from([False, False, True]))
    def pause(self, who: int, number: int, paused: bool) -> None:
        model = self.some_queue(number)
        queue = self.use(who, model)
        if paused:
            queue.pause()
        else:
            queue.resume()
        model.paused = paused
        assert queue.is_paused == paused

    # --- subscribing --------------------------------------------------------------------------

    @precondition(lambda self: self.has_queues() and len(self.watches) < 3)
    @rule(who=who, number=anything, start=st.sampled_from(["now", "earliest"]), lossy=st.booleans())
    def subscribe(self, who: int, number: int, start: Any, lossy: bool) -> None:
        model = self.some_queue(number)
        self.use(who, model)
        real = self.brokers[who].subscribe(model.name, start=start, lossy=lossy, timeout=0)
        self.numbers += 1
        watch = Watch(who, model, self.numbers, lossy, real)
        if start == "now":
            assert real.position == len(model.log)
        else:  # the ring may still hold what is done with
            assert model.head - model.slots <= real.position <= model.head
        if not lossy:
            model.gates[watch.number] = watch.position
        self.watches.append(watch)

    @precondition(lambda self: self.watches)
    @rule(number=anything, timeout=st.sampled_from([0, 0.001]))
    def watch(self, number: int, timeout: float) -> None:
        watch = self.watches[number % len(self.watches)]
        model = watch.queue
        if watch.unreleased >= model.slots // 4:
            self.release(watch)
        if watch.lossy:
            head = self.brokers[watch.who].queue(model.name)._told().head
            watch.missed += max(0, head - watch.position)
            watch.position = max(head, watch.position)
        if watch.position == len(model.log):
            self.release(watch)
            with pytest.raises(shmbroker.Empty):
                watch.real.get(timeout=timeout)
            assert next(watch.real, None) is None
        else:
            message, expected = watch.real.get(timeout=timeout), model.log[watch.position]
            assert (message.position, message.body) == (expected.position, expected.body)
            assert (message.key, message.properties) == (expected.key, expected.properties)
            assert message.is_taken == (expected.state == "held")
            watch.position += 1
            watch.unreleased += 1
        assert watch.real.missed == watch.missed

    def release(self, watch: Watch) -> None:
        if not watch.lossy:
            watch.queue.gates[watch.number] = watch.position
        watch.unreleased = 0

    @precondition(lambda self: self.watches)
    @rule(number=anything)
    def unsubscribe(self, number: int) -> None:
        watch = self.watches.pop(number % len(self.watches))
        watch.real.close()
        watch.queue.gates.pop(watch.number, None)
        with pytest.raises(shmbroker.InvalidArgument, match="closed"):
            watch.real.get(timeout=0)

    @precondition(has_queues)
    @rule(who=who, number=anything, count=st.integers(1, 12))
    def flow(self, who: int, number: int, count: int) -> None:
        """Laps of the ring, with whoever watches: alone, the rules above seldom come so far."""
        for _ in range(count):
            self.publish(who, number, 1, "", {}, 0)
            for watch in range(len(self.watches)):
                self.watch(watch, 0)
            self.receive(who, number)

    # --- exchanges ----------------------------------------------------------------------------

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

    # --- coming and going ---------------------------------------------------------------------

    @rule(who=who)
    def reconnect(self, who: int) -> None:
        former = self.brokers[who]
        queues = [former.queue(name) for name in self.model.queues]
        former.close()
        former.close()
        for queue in queues:
            with pytest.raises(shmbroker.ConnectionClosed):
                queue.publish(b"")
            with pytest.raises(shmbroker.ConnectionClosed):
                queue.get()
        with pytest.raises(shmbroker.ConnectionClosed):
            former.queues()
        for model in self.model.queues.values():
            model.leave(who)
        self.drop_uses(lambda use: use.who == who, shmbroker.ConnectionClosed)
        self.brokers[who] = self.connect(who)

    @rule(who=who)
    def repair(self, who: int) -> None:
        assert self.brokers[who].repair() == 0

    # --- looking ------------------------------------------------------------------------------

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


class TestModel(Machine.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(
        max_examples=EXAMPLES or 500,
        stateful_step_count=60,
        deadline=None,
        derandomize=not EXAMPLES,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
