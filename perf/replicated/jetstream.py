"""NATS JetStream: a stream with three replicas that sync always; a confirm means that two have it.

The client has all addresses; it publishes again what nobody has answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.peers.jetstream import JetStream
from shmbroker.perf.replicated.group import QUEUE, Group
from shmbroker.perf.server.connection import OUTSTANDING, Connection
from shmbroker.perf.server.server import HOST

CONFIG = """\
server_name: {name}
host: {host}
port: {port}
jetstream {{ store_dir: "{folder}", sync_interval: always }}
cluster {{ name: bench, host: {host}, port: {route}, routes: [{routes}] }}
"""
CONSUMER = "all"
TAKE_S = 0.05
ANSWER_S = 1.0
"""For a publish; then it is sent again."""
Result = TypeVar("Result")


class JetStreamGroup(Group):
    name = "jetstream"
    names = ("one", "two", "three")

    @classmethod
    def install(cls) -> None:
        JetStream.install()

    @classmethod
    def version(cls) -> str:
        return JetStream.version()

    def configure(self) -> None:
        self._ports = {name: free_port() for name in self.names}
        routes = {name: free_port() for name in self.names}
        all_routes = ", ".join(f'"nats://{HOST}:{each}"' for each in routes.values())
        for name in self.names:
            place = self.folder / f"{name}-data"
            text = CONFIG.format(
                name=name, host=HOST, port=self._ports[name], route=routes[name], folder=place,
                routes=all_routes,
            )  # fmt: skip
            (self.folder / f"{name}.conf").write_text(text)

    def started(self, name: str) -> Program:
        command = [JetStream.found_program() or JetStream.program, "--config"]
        config = str(self.folder / f"{name}.conf")
        return Program([*command, config], self.folder / f"{name}-said")

    def connect(self) -> Connection:
        return _Stream([f"nats://{HOST}:{each}" for each in self._ports.values()])

    def answering(self) -> str | None:
        """Before the stream is made: whoever is there."""
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(self._asked())
        except (OSError, TimeoutError, import_module("nats.errors").Error):
            return None
        finally:
            loop.close()

    async def _asked(self) -> str | None:
        nats: Any = import_module("nats")
        errors: Any = import_module("nats.js.errors")
        servers = [f"nats://{HOST}:{each}" for each in self._ports.values()]
        client = await nats.connect(servers=servers, allow_reconnect=False, connect_timeout=1)
        try:
            stream = client.jetstream(timeout=ANSWER_S)
            await stream.account_info()
            cluster = (await stream.stream_info(QUEUE)).cluster
        except errors.NotFoundError:
            return self.names[0]
        finally:
            await client.close()
        others = cluster.replicas or []
        is_whole = len(others) == len(self.names) - 1 and all(each.current for each in others)
        found: str | None = cluster.leader
        return found if is_whole else None


class _Stream(Connection):
    """nats-py is asynchronous: its loop runs whenever something is waited for."""

    def __init__(self, servers: list[str]) -> None:
        self._loop = asyncio.new_event_loop()
        self._coming: Any = None
        nats: Any = import_module("nats")
        self._errors: Any = import_module("nats.errors")
        self._client = self._wait(
            nats.connect(
                servers=servers, max_reconnect_attempts=-1, reconnect_time_wait=0.01,
                error_cb=_unheard,
            )
        )  # fmt: skip
        self._stream = self._client.jetstream(
            publish_async_max_pending=OUTSTANDING, timeout=ANSWER_S
        )
        self._wait(self._declare())

    async def _declare(self) -> None:
        api: Any = import_module("nats.js.api")
        await self._again(
            lambda: self._stream.add_stream(
                name=QUEUE, subjects=[QUEUE], storage="file", num_replicas=len(JetStreamGroup.names)
            )
        )
        config = api.ConsumerConfig(durable_name=CONSUMER, max_ack_pending=OUTSTANDING)
        await self._again(lambda: self._stream.add_consumer(QUEUE, config))

    async def _again(self, does: Any) -> Any:
        """Until somebody answers."""
        while True:
            with suppress(TimeoutError, OSError, self._errors.Error):
                return await does()
            await asyncio.sleep(0.001)

    def _wait(self, what: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(what)

    def publish(self, body: bytes) -> None:
        self._wait(self._again(lambda: self._stream.publish(QUEUE, body)))

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        self._wait(self._publish_all(bodies))

    async def _publish_all(self, bodies: Sequence[bytes]) -> None:
        confirms = [await self._stream.publish_async(QUEUE, body) for body in bodies]
        await self._stream.publish_async_completed()
        for confirm in confirms:
            confirm.result()  # raises what went wrong

    def take(self, count: int) -> list[bytes]:
        return self._wait(self._take(count))

    async def _take(self, count: int) -> list[bytes]:
        if self._coming is None:
            self._coming = await self._stream.pull_subscribe_bind(CONSUMER, QUEUE)
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


async def _unheard(_: Exception) -> None:
    """That a connection was lost is no news here."""
