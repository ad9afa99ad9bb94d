"""Who says which member may be live, on a host of its own: it can be killed, and stand still."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from tests.conftest import vhost_for_a_while
from tests.support.hosts import Host
from tests.support.postgres import PASSWORD as OF_DATABASE
from tests.support.postgres import Postgres
from tests.support.runs import Run
from tests.support.witness import PASSWORD, Place
from tests.support.zookeeper import Ensemble

LEASE = "1.5s"


class Guard(Protocol):
    settings: dict[str, object]
    """Of members."""

    def settings_of(self, name: str, address: str) -> dict[str, object]:
        """More, of this one."""

    def begin(self) -> None:
        """Again, if it was killed."""

    def kill(self) -> None: ...

    def stop(self) -> None: ...

    def go_on(self) -> None: ...

    def close(self) -> None: ...


class _SameForAll:
    def settings_of(self, name: str, address: str) -> dict[str, object]:
        return {}


class Witness(_SameForAll):
    def __init__(self, host: Host, folder: Path) -> None:
        self._host, self._place = host, Place(folder, address=host.address)
        self.settings: dict[str, object] = {
            **self._place.settings,
            "ha.replication.lease": LEASE,
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


class Database(_SameForAll):
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


class ZooKeeper(_SameForAll):
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


class Nobody(_SameForAll):
    """Members decide by themselves, and confirm nothing while they are parted."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.settings: dict[str, object] = {"ha.replication.on-partition": "stop-confirming"}

    def begin(self) -> None:
        pass

    kill = stop = go_on = close = begin


class Lives:
    """Two other lives of a cluster, of which one is struck after the other."""

    names = ("north", "west")

    def __init__(self, host: Host, folder: Path) -> None:
        self._opened = ExitStack()
        self._uris = {each: f"tcp://{host.address}:{free_port()}" for each in self.names}
        self.settings: dict[str, object] = {
            "ha.replication.vote-on-replication-failure": True,
            "ha.replication.vote-retry-wait": "200ms",
            "ha.replication.vote-retries": 1000,
            "ha.replication.quorum-vote-wait": "5s",
            "ha.replication.lease": LEASE,
            **self._town(self._uris),
        }
        self._runs = []
        for name, uri in self._uris.items():
            given = {
                "store.path": "data",
                "link-defaults.heartbeat-interval": "500ms",
                **self._town(self._uris),
                **self._own(name, uri),
            }
            vhost = self._opened.enter_context(vhost_for_a_while())
            run = Run(folder / name, vhost, "live", given)
            run.before = host.enter
            self._opened.callback(run.kill)
            self._runs.append(run)
        self._struck = 0
        self.begin()

    def _town(self, uris: Mapping[str, str]) -> dict[str, object]:
        return {
            "cluster.town.user": "town",
            "cluster.town.password": PASSWORD,
            "cluster.town.static-connectors": list(uris),
            "cluster.town.max-hops": 0,
            "cluster.town.retry-interval": "50ms",
            "acceptors.town.roles": ["cluster"],
            **{f"connectors.{name}.uri": uri for name, uri in uris.items()},
        }

    def _own(self, name: str, uri: str) -> dict[str, object]:
        return {
            "cluster.town.connector": name,
            "acceptors.town.uri": uri,
            f"connectors.{name}.uri": uri,
        }

    def settings_of(self, name: str, address: str) -> dict[str, object]:
        return self._own(name, f"tcp://{address}:{free_port()}")

    def begin(self) -> None:
        for each in self._runs:
            if each.process is None or each.process.status is not None:
                each.start().becomes("live")

    def _next(self) -> Process:
        self._struck = (self._struck + 1) % len(self._runs)
        process = self._runs[self._struck].process
        assert process is not None
        return process

    def kill(self) -> None:
        self._next().kill()

    def stop(self) -> None:
        self._next().stop()

    def go_on(self) -> None:
        process = self._runs[self._struck].process
        assert process is not None
        process.go_on()

    def close(self) -> None:
        self._opened.close()
