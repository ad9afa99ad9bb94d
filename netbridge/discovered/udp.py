"""Announcements by UDP multicast: the sockets of who announces and of who hears."""

from __future__ import annotations

import socket
import time
from typing import Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.discovered.wake import Wake
from shmbroker.netbridge.discovery.codec import BYTES_MAX
from shmbroker.netbridge.discovery.option import ANONYMOUS, Means

ANY: Final = "0.0.0.0"
"""The interface that the routes say."""
TOGETHER: Final = 100
PAUSE_SECONDS: Final = 0.1
"""After so many datagrams at once there is a pause: what comes beyond that the kernel drops."""
IP_MULTICAST_ALL: Final = 49
"""Of <linux/in.h>."""


def _interface(means: Means) -> bytes:
    return socket.inet_aton(means.interface or ANY)


class UdpSender(Closable):
    """Made anew after an OSError."""

    def __init__(self, means: Means, local_port: int) -> None:
        self._to = means.group, means.port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _interface(means))
            port = 0 if local_port == ANONYMOUS else local_port
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((means.interface or ANY, port))
            self._socket.setblocking(False)
        except OSError:
            self._socket.close()
            raise

    def say(self, data: bytes) -> None:
        """OSError: there is no way to the group."""
        self._socket.sendto(data, self._to)

    def close(self) -> None:
        self._socket.close()


class UdpSource(Closable):
    def __init__(self, means: Means, wake: Wake, refresh: float) -> None:
        """`refresh`: a socket that has heard nothing for so long is opened anew: the interface may
        have been made anew."""
        self._means, self._wake, self._refresh = means, wake, refresh
        self._socket: socket.socket | None = None
        self._heard_at = 0.0
        self._pause_until = 0.0

    def read(self, timeout: float) -> list[bytes]:
        """What has come, after a wait; OSError: there is no such interface, or no route."""
        now = time.monotonic()
        if now < self._pause_until:
            self._wake.wait(self._pause_until - now)
            return []
        if self._socket is None:
            self._socket, self._heard_at = self._opened(), now
        is_there = self._wake.wait(min(timeout, self._refresh), self._socket)
        found = self._come(self._socket) if is_there else []
        now = time.monotonic()
        if found:
            self._heard_at = now
        elif now >= self._heard_at + self._refresh:
            self.close()
        if len(found) == TOGETHER:
            self._pause_until = now + PAUSE_SECONDS
        return found

    @staticmethod
    def _come(source: socket.socket) -> list[bytes]:
        found: list[bytes] = []
        while len(found) < TOGETHER:
            try:
                found.append(source.recv(BYTES_MAX + 1))
            except BlockingIOError:
                break
        return found

    def _opened(self) -> socket.socket:
        means = self._means
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.setblocking(False)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
            made.bind((means.group, means.port))
            member = socket.inet_aton(means.group) + _interface(means)
            made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        except OSError:
            made.close()
            raise
        return made

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
