"""NATS JetStream: a stream with three replicas that sync always; a confirm means that two have it.

The client has all addresses; it publishes again what nobody has answered.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import Any

from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.peers.jetstream import CONSUMER, JetStream, Stream
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
ANSWER_S = 1.0
"""For a publish; then it is sent again."""


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


class _Stream(Stream):
    def __init__(self, servers: list[str]) -> None:
        self._errors: Any = import_module("nats.errors")
        super().__init__(
            servers, QUEUE, "file",
            max_reconnect_attempts=-1, reconnect_time_wait=0.01, error_cb=_unheard,
        )  # fmt: skip

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

    def publish(self, body: bytes) -> None:
        self._wait(self._again(lambda: self._stream.publish(QUEUE, body, timeout=ANSWER_S)))


async def _unheard(_: Exception) -> None:
    """That a connection was lost is no news here."""
