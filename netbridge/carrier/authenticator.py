"""Which CURVE key a peer has, as libzmq has authenticated it (ZAP, RFC 27).

Who may is decided by the proofs of the handshake, which are of these keys.  Any key may come, or
those that the broker knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import zmq

ADDRESS = "inproc://zeromq.zap.01"
DOMAIN = "shmbroker"
KEY_BYTES = 32
FIELDS = 7
ANSWERS_MAX = 64
"""In a turn."""


class Authenticator:
    def __init__(
        self, context: zmq.Context[Any], is_known: Callable[[bytes], bool] = lambda _: True
    ) -> None:
        self._is_known = is_known
        self.socket: Any = context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(ADDRESS)

    def readable(self) -> None:
        for _ in range(ANSWERS_MAX):
            try:
                asked = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.socket.send_multipart(self._answer(asked))

    def _answer(self, asked: list[bytes]) -> list[bytes]:
        version, request = asked[0], asked[1] if len(asked) > 1 else b""
        is_curve = len(asked) == FIELDS and asked[5] == b"CURVE" and len(asked[6]) == KEY_BYTES
        if is_curve and self._is_known(asked[6]):
            return [version, request, b"200", b"OK", asked[6].hex().encode(), b""]
        return [version, request, b"400", b"not known", b"", b""]

    def close(self) -> None:
        self.socket.close()


def key_of(frame: Any) -> bytes:
    """Of the peer that has sent this part of a message."""
    return bytes.fromhex(frame.get("User-Id"))
