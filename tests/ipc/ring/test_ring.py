"""What a program may expect of a ring: order, acknowledgement, and clear errors."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker import Ring


def test_messages_arrive_in_order_and_once(ring_name: str) -> None:
    with Ring.create(ring_name, slots=8) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        for lap in range(100):
            bodies = [b"%d.%d" % (lap, index) for index in range(8)]
            positions = [producer.publish(body) for body in bodies]
            assert positions == list(range(lap * 8, lap * 8 + 8))
            assert [consumer.receive() for _ in bodies] == bodies
        assert consumer.receive(spins=0) is None


def test_an_empty_message_is_a_message(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        producer.publish(b"")
        with consumer.take() as message:
            assert message.body == b""
            assert len(message.view) == 0
        producer.publish_many([b"", b"a", b""])
        assert consumer.receive_many() == [b"", b"a", b""]


def test_a_full_ring_takes_no_more_and_loses_nothing(ring_name: str) -> None:
    with Ring.create(ring_name, slots=4) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        assert producer.publish_many([b"a", b"b", b"c", b"d", b"e"]) == 4
        with pytest.raises(shmbroker.QueueFull, match="is full"):
            producer.publish(b"e", spins=0)
        assert consumer.receive() == b"a"
        producer.publish(b"e")
        assert [consumer.receive() for _ in range(4)] == [b"b", b"c", b"d", b"e"]


def test_trying_again_on_a_full_ring_costs_no_memory(ring_name: str) -> None:
    with Ring.create(ring_name, slots=2, arena_bytes=64 << 10) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        producer.publish_many([b"a", b"b"])
        for _ in range(10_000):
            with pytest.raises(shmbroker.QueueFull):
                producer.publish(bytes(1000), spins=0)
        assert consumer.receive() == b"a"
        producer.publish(bytes(1000))


def test_an_unacknowledged_message_comes_back(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        producer, first, second = ring.port(1), ring.port(2), ring.port(3)
        producer.publish_many([b"a", b"b"])
        with pytest.raises(RuntimeError, match="on purpose"), first.take() as message:
            assert message.deliveries == 0
            raise RuntimeError("on purpose")
        with second.take() as message:
            assert (message.body, message.deliveries) == (b"a", 1)
        assert second.receive() == b"b"


def test_acknowledging_twice_is_told(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        producer.publish(b"a")
        message = consumer.take()
        message.ack()
        with pytest.raises(shmbroker.DeliveryRevoked):
            message.ack()
        with pytest.raises(shmbroker.DeliveryRevoked):
            message.give_back()


def test_a_dead_consumer_s_message_is_given_back(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        producer, dead, alive = ring.port(1), ring.port(2), ring.port(3)
        producer.publish_many([b"a", b"b"])
        late = dead.take()
        assert alive.receive() == b"b"
        assert alive.receive(spins=0) is None
        assert alive.repair(alive=[1, 3]) > 0
        assert alive.receive() == b"a"
        with pytest.raises(shmbroker.DeliveryRevoked):
            late.ack()


def test_a_lease_that_runs_out_is_revoked(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        producer, slow, other = ring.port(1), ring.port(2), ring.port(3)
        producer.publish(b"a")
        late = slow.take()
        other.repair(alive=[1, 2, 3], now_ms=1000, grace_ms=50)  # counts from now on
        assert other.receive(spins=0) is None
        other.repair(alive=[1, 2, 3], now_ms=1051, grace_ms=50)
        assert other.receive() == b"a"
        with pytest.raises(shmbroker.DeliveryRevoked):
            late.ack()


def test_a_dead_producer_s_memory_is_freed(ring_name: str) -> None:
    with Ring.create(ring_name, slots=64, arena_bytes=64 << 10) as ring:
        survivor, consumer = ring.port(1), ring.port(2)
        for generation in range(50):
            doomed = ring.port(9)
            doomed.publish(b"%d" % generation)
            doomed.publish(bytes(8000))  # and goes without a word
            assert consumer.receive() == b"%d" % generation
            assert consumer.receive() == bytes(8000)
            survivor.repair(alive=[1, 2])
        survivor.publish(bytes(16_000))


def test_large_messages_take_runs_of_blocks(ring_name: str) -> None:
    with Ring.create(ring_name, slots=16, arena_bytes=16 << 20) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        for index in range(200):
            body = bytes([index]) * (1 << 20)
            producer.publish(body)
            assert consumer.receive() == body


def test_the_sequence_number_survives_its_producer(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        consumer = ring.port(2)
        first = ring.port(1)
        assert first.number(identity=77) == 0
        first.publish(b"a")
        first.publish_many([b"b", b"c"])
        again = ring.port(3)
        assert again.number(identity=77) == 3
        assert again.number(identity=78) == 0
        assert len(consumer.receive_many()) == 3


def test_loans_are_published_in_place(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        with producer.loan(5) as loan:
            loan.view[:] = b"hello"
        with pytest.raises(RuntimeError), producer.loan(5) as loan:
            raise RuntimeError("nobody hears of this one")
        first, second = producer.loan(1), producer.loan(2)
        second.view[:] = b"22"
        second.publish()
        first.view[:] = b"1"
        first.publish()
        assert [consumer.receive() for _ in range(3)] == [b"hello", b"22", b"1"]
        assert consumer.receive(spins=0) is None


def test_buffers_are_published(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        producer.publish_buffer(bytearray(b"abc"))
        producer.publish_buffer(memoryview(b"abcdef")[::1])
        assert [consumer.receive(), consumer.receive()] == [b"abc", b"abcdef"]


def test_every_gating_subscriber_sees_everything(ring_name: str) -> None:
    with Ring.create(ring_name, slots=4, broadcast=True) as ring:
        producer = ring.port(1)
        cursors = [ring.port(2 + index).subscribe() for index in range(3)]
        seen: list[list[bytes | None]] = [[], [], []]
        for index in range(100):
            producer.publish(b"%d" % index)
            for cursor, bodies in zip(cursors, seen, strict=True):
                bodies.append(cursor.next())
                cursor.release()
        assert all(bodies == [b"%d" % index for index in range(100)] for bodies in seen)


def test_a_slow_gate_holds_the_ring_back(ring_name: str) -> None:
    with Ring.create(ring_name, slots=4) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        cursor = ring.port(3).subscribe()
        producer.publish_many([b"a", b"b", b"c", b"d"])
        assert len(consumer.receive_many()) == 4
        with pytest.raises(shmbroker.QueueFull):
            producer.publish(b"e", spins=0)
        assert [cursor.next() for _ in range(4)] == [b"a", b"b", b"c", b"d"]
        cursor.release()
        producer.publish(b"e")
        cursor.close()
        producer.publish_many([b"f", b"g", b"h"])


def test_a_dead_subscriber_s_gate_is_dropped(ring_name: str) -> None:
    with Ring.create(ring_name, slots=2) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        dead = ring.port(3).subscribe()
        producer.publish_many([b"a", b"b"])
        consumer.receive_many()
        consumer.repair(alive=[1, 2])
        producer.publish(b"c")
        with pytest.raises(shmbroker.DeliveryRevoked):
            for _ in range(4):
                dead.next(spins=0)


def test_a_lossy_subscriber_counts_what_it_missed(ring_name: str) -> None:
    with Ring.create(ring_name, slots=4) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        cursor = ring.port(3).subscribe_lossy()
        producer.publish_many([b"a", b"b"])
        assert cursor.next() == b"a"
        consumer.receive_many()
        for index in range(6):
            producer.publish(b"%d" % index)
            consumer.receive()
        producer.publish(b"last")
        assert cursor.next() == b"last"
        assert cursor.missed == 7


def test_peek_looks_without_taking(ring_name: str) -> None:
    with Ring.create(ring_name, slots=4) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        producer.publish_many([b"a", bytes(100_000)])
        assert consumer.peek(0) == b"a"
        assert consumer.peek(1) == bytes(100_000)
        assert consumer.peek(2) is None
        assert len(consumer.receive_many()) == 1
        consumer.receive()
        producer.publish_many([b"c"] * 4)
        with pytest.raises(shmbroker.MessageGone):
            consumer.peek(0)


def test_the_oldest_can_be_dropped_for_room(ring_name: str) -> None:
    with Ring.create(ring_name, slots=2) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        producer.publish_many([b"a", b"b"])
        assert producer.drop_oldest()
        producer.publish(b"c")
        assert [consumer.receive(), consumer.receive()] == [b"b", b"c"]
