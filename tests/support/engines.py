"""Members that have an engine for their voter."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty

from shmbroker.ipc.instance.lock.database import Address
from shmbroker.netbridge.election.question import Grant, Renew, Stale
from shmbroker.netbridge.engine.engine import Engine
from shmbroker.netbridge.engine.sql import Sql
from shmbroker.netbridge.engine.voters import EngineVoters
from shmbroker.netbridge.engine.zookeeper import ZooKeeper
from shmbroker.perf.machine.process import Process
from tests.support.postgres import PASSWORD, Postgres
from tests.support.witness import NODE, Asker
from tests.support.zookeeper import Ensemble

Make = Callable[[str], Engine]
"""The engine, as the member of that name has it."""
LEASE_MS = 2000
"""And the time-out of sessions: long enough for a machine that is busy."""


class EngineMember(Asker):
    def __init__(self, name: str, make: Make) -> None:
        super().__init__(name)
        self.voters = EngineVoters(self.thread, make(name), name, self.tell)
        self.voters.begin(self)

    def states(self) -> list[object]:
        return [each["state"] for each in self.lines]


def zookeeper(ensemble: Ensemble, namespace: str) -> Make:
    return lambda me: ZooKeeper(ensemble.connect, namespace, me, LEASE_MS / 1000)


def in_database(parameters: Mapping[str, object], table: str) -> Make:
    address = Address({"password": PASSWORD, "connect_timeout": 2, **parameters}, (PASSWORD,))
    return lambda me: Sql(address, table, me, 5.0)


def of_postgres(postgres: Postgres, table: str) -> Make:
    import psycopg

    return in_database(dict(psycopg.conninfo.conninfo_to_dict(postgres.url)), table)


def living(make: Make, grant: Grant, folder: Path) -> Process:
    """A live in a process of its own: it renews until it hears that it is live no more."""

    def live() -> int:
        member = EngineMember(grant.holder, make).wait()
        while True:
            member.serial += 1
            member.say(Renew(NODE, grant, 1, member.serial, LEASE_MS))
            try:
                _, found = member.said.get(timeout=1)
            except Empty:  # its voter was down just then
                continue
            if isinstance(found, Stale):
                (folder / "stale").write_text(str(found.newest.epoch))
                return 0
            (folder / "renewed").touch()
            time.sleep(LEASE_MS / 10_000)

    return Process(live, folder / "live.errors")
