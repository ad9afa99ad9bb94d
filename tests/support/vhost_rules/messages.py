"""Rules for messages: publishing, taking, subscribing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import shmbroker
from tests.support.model import MessageModel, QueueModel
from tests.support.vhost_rules.world import (
    Held,
    Lent,
    Watch,
    World,
    anything,
    body_of,
    keys,
    properties,
    sizes,
    who,
)


class MessageRules(World):
    """What happens to messages."""

    @precondition(World.has_queues)
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

    @precondition(World.has_queues)
    @rule(who=who, number=anything, several=st.lists(sizes, max_size=10))
    def publish_many(self, who: int, number: int, several: list[int]) -> None:
        model = self.some_queue(number)
        bodies = [body_of(size, tag) for tag, size in enumerate(several)]
        queue = self.brokers[who].queue(model.name)
        if bodies:
            self.use(who, model, as_="producer")
        fit = bodies[: model.room]
        if len(fit) == len(bodies):
            assert queue.publish_many(bodies, timeout=0) == len(fit)
        else:
            with pytest.raises(shmbroker.QueueFull) as told:
                queue.publish_many(bodies, timeout=0)
            assert told.value.published == len(fit)
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

    def took(self, who: int, queue: QueueModel, model: MessageModel, real: Any) -> None:
        assert real.position == model.position
        assert (real.body, real.key) == (model.body, model.key)
        assert bytes(real.view) == model.body
        assert real.properties == model.properties
        assert real.deliveries == model.deliveries
        model.state, model.holder = "held", who
        self.held.append(Held(who, queue, model, real))

    @precondition(World.has_queues)
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

    @precondition(World.has_queues)
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

    @precondition(World.has_queues)
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

    @precondition(World.has_queues)
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

    @precondition(World.has_queues)
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

    @precondition(World.has_queues)
    @rule(who=who, number=anything, count=st.integers(1, 12))
    def flow(self, who: int, number: int, count: int) -> None:
        """Laps of the ring, with whoever watches: alone, the rules above seldom come so far."""
        for _ in range(count):
            self.publish(who, number, 1, "", {}, 0)
            for watch in range(len(self.watches)):
                self.watch(watch, 0)
            self.receive(who, number)
