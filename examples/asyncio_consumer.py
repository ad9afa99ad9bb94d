"""A consumer for asyncio: asyncio_consumer.py URL QUEUE TALLY

Takes messages until an empty one comes, and notes in the file TALLY how long each took.
"""

import asyncio
import struct
import sys
import time

import tally

import shmbroker


async def consume(url: str, name: str, got: memoryview) -> int:
    count = 0
    async with shmbroker.aio.connect(url) as broker:
        queue = await broker.queue(name)
        print("ready", flush=True)
        async for message in queue.consume():
            if not message.body:
                message.ack()
                break
            number, sent = struct.unpack_from("qq", message.body)
            took = time.monotonic_ns() - sent
            got[number] = -took if message.deliveries else took
            count += 1
    return count


async def main() -> None:
    url, name, path = sys.argv[1:]
    async with asyncio.TaskGroup() as tasks:
        consuming = tasks.create_task(consume(url, name, tally.attach(path)))
        # other tasks run here as they like: while there is no message, the loop is free
    print(consuming.result(), "messages")


asyncio.run(main())
