"""Redis in memory with a replica: what a queue replica is measured beside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.micro.followed import BODY, Followed, waited_for
from shmbroker.perf.peers.redis_stream import RedisInMemory
from shmbroker.perf.server.server import HOST, Place

STREAM: Final = "orders"
BATCH: Final = 512


class Stream(Followed):
    name = "Redis, a replicated stream"

    def __init__(self, master: Any, copy: Any) -> None:
        self._master, self._copy = master, copy
        self._published = 0

    def publish(self, count: int) -> None:
        """In pipelines."""
        wire = self._master.connection_pool.get_connection()
        head = b"*5\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$1\r\n*\r\n$1\r\nb\r\n" % (
            len(STREAM),
            STREAM.encode(),
        )
        command = b"%b$%d\r\n%b\r\n" % (head, len(BODY), BODY)
        for at in range(0, count, BATCH):
            many = min(BATCH, count - at)
            wire.send_packed_command([command * many])
            for _ in range(many):
                wire.read_response()
        self._master.connection_pool.release(wire)
        self._published += count

    def drain(self, count: int) -> None:
        left = int(self._master.xlen(STREAM)) - count
        self._master.xtrim(STREAM, maxlen=max(0, left), approximate=False)

    @property
    def published(self) -> int:
        return self._published

    @property
    def arrived(self) -> int:
        return int(self._copy.xinfo_stream(STREAM)["entries-added"])


@contextmanager
def replicated(folder: Path) -> Iterator[Stream | None]:
    """None: it is not installed."""
    if not RedisInMemory.installed():
        yield None
        return
    redis: Any = import_module("redis")
    with ExitStack() as opened:
        clients = []
        for name in ("master", "copy"):
            place = Place(folder / f"redis {name}", free_port())
            place.folder.mkdir()
            program: Program = RedisInMemory().start(place, opened)
            waited_for(lambda place=place: RedisInMemory().is_up(place))  # type: ignore[misc]
            program.check()
            clients.append(opened.enter_context(redis.Redis(host=HOST, port=place.port)))
        master, copy = clients
        copy.replicaof(HOST, str(master.connection_pool.connection_kwargs["port"]))
        master.xadd(STREAM, {"b": BODY})
        waited_for(lambda: copy.info("replication")["master_link_status"] == "up")
        waited_for(lambda: copy.exists(STREAM) == 1)
        made = Stream(master, copy)
        made._published = 1
        yield made
