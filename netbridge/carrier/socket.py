"""The sockets of links: DEALER at the near end, ROUTER at the far end, CURVE always.

ZeroMQ only carries.  It does not reconnect by itself, as a link that is made again is another one.
TCP_NODELAY is what libzmq always sets.  What is sent is bounded by the credit of each target, and
by what it has not told of (`netbridge/link/outflow.py`); the limit of the send queue is for what
has no credit, to a peer that beats and never reads.  At it a socket refuses to send, and the
connection counts as lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import zmq
from zmq.utils import z85

from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.wire.frame import Body

LINGER_MS = 1000
NEVER_MS = 3_600_000
"""A link makes a socket for each connection, and closes it when that has ended."""
RECEIVED_MAX = 64
"""Messages of a peer that wait here; beyond it TCP holds the peer back."""
SENT_MAX = 100_000
"""Frames that wait to be read by a peer."""
HEAD_ROOM = 8192
PARTS_MAX = 3
"""One more than a message of ours has: the name of its peer, and a frame."""
DROPPED_MAX = 16
"""Parts, in place of a message in a turn."""
READABLE, EVENTS = int(zmq.POLLIN), int(zmq.EVENTS)
MORE, LAST = int(zmq.NOBLOCK | zmq.SNDMORE), int(zmq.NOBLOCK)
"""As integers: a flag of an enum would be made anew for each frame."""
_Compiled: Any = zmq.backend.Socket
_get, _recv, send = _Compiled.get, _Compiled.recv, _Compiled.send
"""Of pyzmq: what its classes for people put around these takes longer than they do.

`send`: a part of a message, to be followed by `MORE` or the `LAST` one; zmq.Again: as much waits to
be sent as may.
"""


def _common(socket: Any, times: LinkTimes, address: str) -> None:
    # -1, or IMMEDIATE: what was not read when its connection ends would be dropped
    socket.setsockopt(zmq.RECONNECT_IVL, NEVER_MS)
    socket.setsockopt(zmq.LINGER, LINGER_MS)
    socket.setsockopt(zmq.SNDHWM, SENT_MAX)
    socket.setsockopt(zmq.RCVHWM, RECEIVED_MAX)
    socket.setsockopt(zmq.MAXMSGSIZE, times.max_frame_size + HEAD_ROOM)
    socket.setsockopt(zmq.HANDSHAKE_IVL, int(times.handshake_timeout * 1000))
    socket.setsockopt(zmq.IPV6, "[" in address)


def is_readable(socket: Any) -> bool:
    return bool(_get(socket, EVENTS) & READABLE)


class Received:
    """What comes on a socket, message by message."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self.has_rest = False
        """Of a message with more parts than any of ours; it is dropped before the next one."""

    def next(self, *, is_signalled: bool = False) -> list[Any] | None:
        """The parts of the next message, no more than are looked at; none, if some of the rest of
        the one before was dropped instead.  None: there is nothing.

        `is_signalled`: there should be one.  To be told by an exception that there is none takes
        longer than to ask, and to ask takes longer than to receive it.
        """
        if self.has_rest:
            self._drop()
            return []
        if not is_signalled and not _get(self._socket, EVENTS) & READABLE:
            return None
        try:
            part = _recv(self._socket, LAST, False)
        except zmq.Again:
            return None
        parts = [part]
        while part.more:
            if len(parts) == PARTS_MAX:
                self.has_rest = True
                break
            part = _recv(self._socket, LAST, False)
            parts.append(part)
        return parts

    def _drop(self) -> None:
        """A peer may send a million parts, and others wait."""
        for _ in range(DROPPED_MAX):
            if not _recv(self._socket, LAST, False).more:
                self.has_rest = False
                return


def whole(parts: Sequence[Any]) -> Body:
    """What a peer has sent; nothing, which is no frame, if that has several parts."""
    return parts[0].buffer if len(parts) == 1 else b""


def dealer(
    context: zmq.Context[Any],
    times: LinkTimes,
    address: str,
    ours: tuple[bytes, bytes],
    far: bytes,
) -> Any:
    """For this address.  `ours`: public and secret key; `far`: the public key of the other end."""
    socket = context.socket(zmq.DEALER)
    _common(socket, times, address)
    socket.setsockopt(zmq.CONNECT_TIMEOUT, int(times.connect_timeout * 1000))
    socket.setsockopt(zmq.CURVE_PUBLICKEY, z85.encode(ours[0]))
    socket.setsockopt(zmq.CURVE_SECRETKEY, z85.encode(ours[1]))
    socket.setsockopt(zmq.CURVE_SERVERKEY, z85.encode(far))
    return socket


def router(
    context: zmq.Context[Any], times: LinkTimes, address: str, secret: bytes, domain: str
) -> Any:
    """`domain`: of the one who tells which keys its peers have (authenticator.py)."""
    socket = context.socket(zmq.ROUTER)
    _common(socket, times, address)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_SECRETKEY, z85.encode(secret))
    socket.setsockopt(zmq.CURVE_PUBLICKEY, z85.encode(public_of(secret)))
    socket.setsockopt(zmq.ZAP_DOMAIN, domain.encode())
    return socket
