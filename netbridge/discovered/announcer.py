"""One broadcast of a broker, in a thread of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.discovered.registry import RegistrySender
from shmbroker.netbridge.discovered.udp import UdpSender
from shmbroker.netbridge.discovery.announcing import NEVER, Announcing
from shmbroker.netbridge.discovery.codec import encode
from shmbroker.netbridge.discovery.option import UDP, Broadcast
from shmbroker.netbridge.security.signature import Signature
from shmbroker.netbridge.security.stretched import Stretched

Tell = Callable[[Mapping[str, Any]], None]
END_SECONDS: Final = 2.0
"""A folder on another host may hang: then nobody waits for it."""


class Announcer(Closable):
    def __init__(
        self, broadcast: Broadcast, keys: tuple[Stretched, ...], name: str, tell: Tell
    ) -> None:
        """`name`: of this broker; `keys`: the first one signs."""
        self._broadcast, self._name, self._tell = broadcast, name, tell
        self._signature = Signature(keys, broadcast.means.place)
        self._machine = Announcing(
            name, str(broadcast.connector), broadcast.period, os.urandom(16), time.time_ns()
        )
        self._sender: UdpSender | RegistrySender | None = None
        self._node = b""
        """Of the sender."""
        self._why = ""
        self._is_closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="shmbroker-announce", daemon=True)
        self._thread.start()

    def becomes(self, node: bytes, epoch: int, *, is_live: bool) -> None:
        """What this broker is from now on."""
        with self._news:
            self._machine.becomes(node, epoch, is_live=is_live, now=time.monotonic())
            self._news.notify()

    def close(self) -> None:
        with self._news:
            self._is_closed = True
            self._news.notify()
        self._thread.join(END_SECONDS)

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._is_closed and self._machine.deadline > time.monotonic():
                    due = self._machine.deadline
                    self._news.wait(None if due == NEVER else due - time.monotonic())
                if self._is_closed:
                    break
                said = self._machine.tick(time.monotonic())
            if said is not None:
                self._say(said.node, encode(said, self._signature))
        self._end_sender()

    def _end_sender(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _say(self, node: bytes, data: bytes) -> None:
        try:
            if self._sender is None or node != self._node:
                self._end_sender()
                self._sender, self._node = self._made(node), node
            self._sender.say(data)
        except OSError as error:
            self._end_sender()
            if not self._why:  # once, however often it is tried
                self._line("error", "not announced", str(error))
            self._why = str(error)
        else:
            if self._why:
                self._line("info", "announced again", str(self._broadcast.connector))
            self._why = ""

    def _made(self, node: bytes) -> UdpSender | RegistrySender:
        means = self._broadcast.means
        if means.type == UDP:
            return UdpSender(means, self._broadcast.local_port)
        return RegistrySender(means, node, self._name)

    def _line(self, level: str, state: str, detail: str) -> None:
        self._tell({"event": "broadcast", "level": level, "broadcast": self._broadcast.name,
                    "state": state, "detail": detail})  # fmt: skip
