"""The sockets of links: DEALER at the near end, ROUTER at the far end, CURVE always.

ZeroMQ only carries.  Its own reconnecting is off, because a link that is made again is another one.
TCP_NODELAY is what libzmq always sets.  What is sent is bounded by the credit of each target, so
the send queue has no limit of its own: a ROUTER would drop silently beyond it.
"""

from __future__ import annotations

from typing import Any

import zmq
from zmq.utils import z85

from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.curve import public_of

LINGER_MS = 1000
RECEIVED_MAX = 64
"""Messages of a peer that wait here; beyond it TCP holds the peer back."""
HEAD_ROOM = 8192


def _common(socket: Any, times: LinkTimes, address: str) -> None:
    socket.setsockopt(zmq.RECONNECT_IVL, -1)
    socket.setsockopt(zmq.IMMEDIATE, 1)
    socket.setsockopt(zmq.LINGER, LINGER_MS)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, RECEIVED_MAX)
    socket.setsockopt(zmq.MAXMSGSIZE, times.max_frame_size + HEAD_ROOM)
    socket.setsockopt(zmq.HANDSHAKE_IVL, int(times.handshake_timeout * 1000))
    socket.setsockopt(zmq.IPV6, "[" in address)


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
