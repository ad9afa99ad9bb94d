"""Redis: a stream and one group of consumers, with `appendfsync always`.

Redis answers when its log is synced, once for all that it has read by then; from one connection it
reads 16 KiB at a time, so that is few. What it has between MULTI and EXEC it syncs once: measured,
three times as fast as a pipeline. Commands are written and replies are read by the connection of
redis-py (with hiredis) itself: what its pipeline does for each command takes longer than all else.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any, ClassVar

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.connection import BATCH, OUTSTANDING, ConfirmRefused, Connection
from shmbroker.perf.server.server import HOST, Place, Server

GROUP = "all"
MULTI = b"*1\r\n$5\r\nMULTI\r\n"
EXEC = b"*1\r\n$4\r\nEXEC\r\n"


class Redis(Server):
    name = "redis"
    distribution = "redis"
    package = "redis-server"
    program = "redis-server"
    modules = ("redis", "hiredis")
    sync: ClassVar[str] = "always"
    keeps: ClassVar[str] = "yes"

    def start(self, place: Place, stack: ExitStack) -> Program:
        options = {
            "bind": HOST,
            "port": place.port,
            "dir": place.folder,
            "appendonly": self.keeps,
            "appendfsync": self.sync,
            "auto-aof-rewrite-percentage": 0,  # a rewrite in the middle would be bad luck only
            "save": "",
        }
        command = [self.program]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        return stack.enter_context(Program(command, place.folder / "said"))

    def connect(self, place: Place, queue: str) -> Connection:
        return _Stream(place.port, queue)


class RedisInMemory(Redis):
    durability = "programs"
    keeps = "no"


class _Stream(Connection):
    def __init__(self, port: int, queue: str) -> None:
        redis: Any = import_module("redis")
        self._client = redis.Redis(host=HOST, port=port)
        self._queue = queue
        try:
            self._client.xgroup_create(queue, GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._wire = self._client.connection_pool.get_connection()
        name = queue.encode()
        self._head = b"*5\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$1\r\n*\r\n$1\r\nb\r\n" % (len(name), name)

    def _command(self, body: bytes) -> bytes:
        return b"%b$%d\r\n%b\r\n" % (self._head, len(body), body)

    def publish(self, body: bytes) -> None:
        self._wire.send_packed_command([self._command(body)])
        self._wire.read_response()

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        unread: list[int] = []
        for at in range(0, len(bodies), BATCH):
            batch = bodies[at : at + BATCH]
            self._wire.send_packed_command([MULTI, *map(self._command, batch), EXEC])
            unread.append(len(batch))
            if sum(unread) > OUTSTANDING - BATCH:
                self._read(unread.pop(0))
        for count in unread:
            self._read(count)

    def _read(self, count: int) -> None:
        for _ in range(count + 1):  # MULTI, and the commands
            self._wire.read_response()
        ids = self._wire.read_response()
        if not isinstance(ids, list) or len(ids) != count:
            raise ConfirmRefused(f"EXEC of {count} messages answered {ids!r}")

    def take(self, count: int) -> list[bytes]:
        taken = self._client.xreadgroup(GROUP, "one", {self._queue: ">"}, count, block=0)
        streams = taken.values() if isinstance(taken, dict) else [each for _, each in taken]
        messages = [entry for stream in streams for entry in stream]
        ids = [number for number, _ in messages]
        with self._client.pipeline() as pipeline:
            pipeline.xack(self._queue, GROUP, *ids)
            pipeline.xdel(self._queue, *ids)
            pipeline.execute()
        return [fields[b"b"] for _, fields in messages]

    def close(self) -> None:
        self._client.connection_pool.release(self._wire)
        self._client.close()


PEERS: tuple[Peer, ...] = (Redis(),)
