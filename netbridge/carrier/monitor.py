"""What happens to the connections of a socket, as libzmq's own thread tells it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from shmbroker.netbridge.carrier.socket import is_readable


class Event(Enum):
    ACCEPTED = zmq.EVENT_ACCEPTED
    CONNECTED = zmq.EVENT_CONNECTED
    SECURED = zmq.EVENT_HANDSHAKE_SUCCEEDED
    FAILED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    FAILED_PROTOCOL = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    FAILED_AUTH = zmq.EVENT_HANDSHAKE_FAILED_AUTH
    DISCONNECTED = zmq.EVENT_DISCONNECTED
    CLOSED = zmq.EVENT_CLOSED


ALL = sum(each.value for each in Event)
STRANGE = {
    Event.FAILED: "it broke off the handshake of CURVE, or took too long",
    Event.FAILED_PROTOCOL: "it does not speak ZeroMQ with CURVE, or has another key of ours",
    Event.FAILED_AUTH: "its key is not known",
}
"""Of a handshake that fails, and what that says of who has connected."""
LOST = frozenset({Event.DISCONNECTED, Event.CLOSED})


class Monitor:
    def __init__(self, of: Any) -> None:
        self._of = of
        self.socket: Any = of.get_monitor_socket(ALL)

    def events(self) -> Iterator[tuple[Event, int]]:
        """Each with the descriptor of its connection."""
        while is_readable(self.socket):
            told = parse_monitor_message(self.socket.recv_multipart(zmq.NOBLOCK))
            yield Event(told["event"]), told["value"]

    def close(self) -> None:
        self._of.disable_monitor()
