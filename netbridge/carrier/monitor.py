"""What happens to the connections of a socket, as libzmq's own thread tells it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message


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
LOST = frozenset({Event.DISCONNECTED, Event.CLOSED})


class Monitor:
    def __init__(self, of: Any) -> None:
        self._of = of
        self.socket: Any = of.get_monitor_socket(ALL)

    def events(self) -> Iterator[tuple[Event, int]]:
        """Each with the descriptor of its connection."""
        while self.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            told = parse_monitor_message(self.socket.recv_multipart(zmq.NOBLOCK))
            yield Event(told["event"]), told["value"]

    def close(self) -> None:
        self._of.disable_monitor()
