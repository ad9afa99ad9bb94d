"""What is received on a socket, message by message."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from shmbroker.netbridge.carrier.socket import DROPPED_MAX, PARTS_MAX, Received, whole

PARTS = PARTS_MAX + 2 * DROPPED_MAX + 1


@pytest.fixture
def pair() -> Iterator[tuple[zmq.Socket[bytes], Received]]:
    with zmq.Context() as context, context.socket(zmq.PAIR) as here, context.socket(
        zmq.PAIR
    ) as there:
        here.bind("inproc://here")
        there.connect("inproc://here")
        yield there, Received(here)


def test_nothing_is_received_where_nothing_is(pair: tuple[zmq.Socket[bytes], Received]) -> None:
    _, received = pair
    assert received.next() is None
    assert received.next(is_signalled=True) is None


def test_of_a_message_of_many_parts_few_are_looked_at(
    pair: tuple[zmq.Socket[bytes], Received],
) -> None:
    """The rest is dropped some at a time; the next message is whole."""
    there, received = pair
    there.send_multipart([b"%d" % number for number in range(PARTS)])
    there.send(b"after it")
    parts = received.next()
    assert parts is not None
    assert [part.bytes for part in parts] == [b"0", b"1", b"2"]
    assert whole(parts) == b""
    assert [received.next() for _ in range(3)] == [[], [], []]
    [part] = received.next() or []
    assert part.bytes == b"after it"
    assert received.next() is None
