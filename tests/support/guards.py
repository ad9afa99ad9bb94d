"""Who says which member may be live, on a host of its own: it can be killed, and stand still."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Protocol

from tests.support.hosts import Host
from tests.support.postgres import PASSWORD as OF_DATABASE
from tests.support.postgres import Postgres
from tests.support.witness import PASSWORD, Place
from tests.support.zookeeper import Ensemble

LEASE = "1.5s"


class Guard(Protocol):
    settings: dict[str, object]
    """Of a member."""

    def begin(self) -> None:
        """Again, if it was killed."""

    def kill(self) -> None: ...

    def stop(self) -> None: ...

    def go_on(self) -> None: ...

    def close(self) -> None: ...


class Witness:
    def __init__(self, host: Host, folder: Path) -> None:
        self._host, self._place = host, Place(folder, address=host.address)
        self.settings: dict[str, object] = {
            "ha.replication.witnesses": [self._place.uri],
            "ha.replication.vote-retry-wait": "200ms",
            "ha.replication.lease": LEASE,
            "credentials.votes.password": PASSWORD,
            "credentials.votes.role": "witness",
        }
        self.begin()

    def begin(self) -> None:
        self._place.begin(self._host.enter)

    def kill(self) -> None:
        self._place.kill()

    def stop(self) -> None:
        assert self._place.process is not None
        self._place.process.stop()

    def go_on(self) -> None:
        assert self._place.process is not None
        self._place.process.go_on()

    close = kill


class Database:
    """PostgreSQL."""

    def __init__(self, host: Host, folder: Path) -> None:
        self._host = host
        with host.entered():
            self._server = Postgres(address=host.address)
        self.settings: dict[str, object] = {
            "ha.replication.lock-manager": "sql",
            "ha.replication.vote-retry-wait": "200ms",
            "sql.url": self._server.url,
            "sql.password": OF_DATABASE,
            "sql.expiration": "3s",
            "sql.renew": "1s",
        }

    def begin(self) -> None:
        with self._host.entered():
            self._server.start()

    def kill(self) -> None:
        self._server.kill()

    def stop(self) -> None:
        self._server.pause()

    def go_on(self) -> None:
        self._server.go_on()

    def close(self) -> None:
        self._server.close()


class ZooKeeper:
    """Three servers, of which one is struck after the other."""

    def __init__(self, host: Host, folder: Path) -> None:
        self._host = host
        with host.entered():
            self._servers = Ensemble(host.address)
        self._struck = 0
        self.settings: dict[str, object] = {
            "ha.replication.lock-manager": "zookeeper",
            "ha.replication.vote-retry-wait": "200ms",
            "ha.zookeeper.connect": self._servers.connect,
            "ha.zookeeper.session-timeout": "2s",
        }

    def begin(self) -> None:
        with self._host.entered():
            self._servers.start()

    def _next(self) -> None:
        self._struck = (self._struck + 1) % len(self._servers.servers)

    def kill(self) -> None:
        self._next()
        self._servers.servers[self._struck].kill()

    def stop(self) -> None:
        self._next()
        self._servers.servers[self._struck].send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._servers.servers[self._struck].send(signal.SIGCONT)

    def close(self) -> None:
        self._servers.close()


class Nobody:
    """Members decide by themselves, and confirm nothing while they are parted."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.settings: dict[str, object] = {"ha.replication.on-partition": "stop-confirming"}

    def begin(self) -> None:
        pass

    kill = stop = go_on = close = begin
