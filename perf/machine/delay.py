"""A wire that is long: what comes to a port goes on to another one, later.

It carries bytes of a TCP connection, so nothing is lost or reordered.  It takes no more than
`IN_FLIGHT_BYTES` each way, as a path between hosts would not.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

CHUNK_BYTES = 256 << 10
IN_FLIGHT_BYTES = 64 << 20
"""More than a gigabyte a second has under way at 20 ms."""


async def _later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    clock = asyncio.get_running_loop().time
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(IN_FLIGHT_BYTES // CHUNK_BYTES)

    async def takes() -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            await under_way.put((clock() + delay, chunk))
        await under_way.put((clock() + delay, b""))

    taking = asyncio.create_task(takes())
    try:
        while True:
            due, chunk = await under_way.get()
            await asyncio.sleep(due - clock())
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
    finally:
        taking.cancel()
        writer.close()


async def _relay(port: int, to: int, delay: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to, limit=CHUNK_BYTES)
        both = _later(reader, far_writer, delay), _later(far_reader, writer, delay)
        with suppress(ConnectionError):  # one end was killed; both are closed then
            await asyncio.gather(*both)

    server = await asyncio.start_server(connected, "127.0.0.1", port, limit=CHUNK_BYTES)
    async with server:
        await server.serve_forever()


def relay(port: int, to: int, delay: float) -> int:
    """For ever, in a process of its own; `delay` is seconds, each way."""
    asyncio.run(_relay(port, to, delay))
    return 0
