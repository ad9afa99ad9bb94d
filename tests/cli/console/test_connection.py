"""Who holds a connection of the console and does not read, or send, is cut off."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from shmbroker.cli.console import connection
from shmbroker.cli.console.connection import Connection
from tests.cli.command import PATIENCE_SECONDS

REQUEST = b"GET / HTTP/1.1\r\nHost: console\r\n\r\n"
Send = Callable[[dict[str, Any]], Awaitable[None]]


def answering(size: int) -> Callable[[Any, Any, Send], Awaitable[None]]:
    async def answers(_scope: Any, _receive: Any, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(size >> 10):
            await send({"type": "http.response.body", "body": bytes(1 << 10), "more_body": True})
        await send({"type": "http.response.body"})

    return answers


async def held(size: int, request: bytes) -> None:
    """Until the connection of somebody who has sent this, and does not read, has ended."""
    state, loop = ServerState(), asyncio.get_running_loop()
    config = Config(answering(size), http=Connection, ws="none", lifespan="off", log_config=None)
    config.load()
    lost = asyncio.Event()

    class Seen(Connection):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    def begun() -> Seen:
        return Seen(config, state, {}, loop)

    server = await loop.create_server(begun, "127.0.0.1", 0)
    stranger = socket.socket()
    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stranger.connect(server.sockets[0].getsockname())
    try:
        stranger.sendall(request)
        await asyncio.wait_for(lost.wait(), PATIENCE_SECONDS)
    finally:
        stranger.close()
        server.close()
    assert not state.connections


@pytest.mark.parametrize(
    ("size", "request_"),
    [
        pytest.param(64 << 20, REQUEST, id="a large answer"),
        pytest.param(64 << 10, REQUEST * 100, id="many answers"),
        pytest.param(0, REQUEST, id="nothing more to read"),
        pytest.param(0, REQUEST[:-2], id="half a request"),
    ],
)
def test_who_does_not_read_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, size: int, request_: bytes
) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(connection, "READ_SECONDS", 0.2, raising=False)
    asyncio.run(held(size, request_))
