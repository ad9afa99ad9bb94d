"""STOMP 1.2 over a socket: as much of it as a benchmark needs.

Written here because stomp.py has a thread for what comes back: measured, it takes 500 us where the
server takes 270.
"""

import socket
from collections.abc import Iterable
from dataclasses import dataclass

READ_BYTES = 256 << 10


class StompError(Exception):
    """The server says no, or has gone."""


@dataclass(frozen=True, slots=True)
class Frame:
    command: bytes
    headers: dict[bytes, bytes]
    body: bytes


def frame(command: bytes, headers: Iterable[bytes] = (), body: bytes | None = None) -> bytes:
    lines = [command, *headers]
    if body is None:
        return b"\n".join(lines) + b"\n\n\0"
    return b"%b\ncontent-length:%d\n\n%b\0" % (b"\n".join(lines), len(body), body)


class Stomp:
    """Connected; not for several threads."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = bytearray()
        self.send(frame(b"CONNECT", (b"accept-version:1.2", b"host:localhost")))
        self.receive(b"CONNECTED")

    def send(self, frames: bytes) -> None:
        self._socket.sendall(frames)

    def has_more(self) -> bool:
        """Whether a frame is here, or most of it."""
        return b"\0" in self._data

    def receive(self, command: bytes) -> Frame:
        """The next frame, which must be such a one."""
        found = self._next()
        if found.command != command:
            raise StompError(f"not {command.decode()} but {found}")
        return found

    def close(self) -> None:
        self._socket.close()

    def _next(self) -> Frame:
        head = self._read_to(b"\n\n", 0)
        said, *lines = bytes(self._data[:head]).strip(b"\n").split(b"\n")
        pairs = (line.partition(b":") for line in reversed(lines))  # of two the first one counts
        headers = {name: value for name, _, value in pairs}
        start = head + 2
        length = int(headers.get(b"content-length", 0))
        end = self._read_to(b"\0", start + length)
        body = bytes(self._data[start:end])
        del self._data[: end + 1]
        return Frame(said, headers, body)

    def _read_to(self, mark: bytes, start: int) -> int:
        """Where the next such mark is, once it is here."""
        while (end := self._data.find(mark, start)) < 0:
            read = self._socket.recv(READ_BYTES)
            if not read:
                raise StompError(f"the server has gone; its last words: {bytes(self._data)!r}")
            self._data += read
        return end
