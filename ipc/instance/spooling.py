"""The spool of an instance: written while it is live, and by a thread of its own.

That it cannot be written, or a queue not read, is no reason not to be live: it is said once, and
tried again.
"""

from __future__ import annotations

import threading

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import connect
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.spool.spool import Counted, More, Spool, counted


class Spooling:
    def __init__(self, config: Config, log: Log, more: More) -> None:
        self._config = config
        self._more = more
        self._log = log
        self._said = ""
        self._unread: tuple[str, ...] = ()
        self._is_over = threading.Event()
        self._since = self._counted()  # before anybody hears that we are live
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """The interval that has begun is written, too."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        spool: Spool | None = None
        left = 0.0
        while not self._is_over.wait(left):
            try:
                if spool is None:
                    spool = self._opened()
                left = spool.tick()
                self._say("")
                self._lacks(spool.unread)
            except Error as error:
                self._say(str(error))
                left = self._config.spool.interval
        if spool is not None:
            try:
                spool.close()
            except Error as error:
                self._say(str(error))

    def _counted(self) -> Counted | None:
        try:
            with connect(f"shm://{self._config.vhost}", observe=True) as broker:
                return counted(broker, self._more)
        except Error:  # the thread will meet it again, and say it
            return None

    def _opened(self) -> Spool:
        wanted = self._config.spool
        spool = Spool(
            f"shm://{self._config.vhost}",
            self._config.folder / wanted.path,
            interval=wanted.interval,
            rotate=wanted.rotate,
            rotate_bytes=wanted.size,
            keep_bytes=wanted.keep,
            parquet=None if wanted.parquet else False,
            since=self._since,
            more=self._more,
        )
        self._since = None
        return spool

    def _lacks(self, unread: tuple[str, ...]) -> None:
        """When it changes."""
        if unread != self._unread:
            self._unread = unread
            if unread:
                self._log.write("spool lacks queues", why="; ".join(unread))
            else:
                self._log.write("spool lacks nothing")

    def _say(self, why: str) -> None:
        """When it changes."""
        if why == self._said:
            return
        self._said = why
        if why:
            self._log.write("spool is not written", why=why)
        else:
            self._log.write("spool is written")
