"""A producer of durable messages in Python: durable_producer.py URL QUEUE NUMBER LOG

One message after the other, each published when the one before is on disk, until its stdin ends.
LOG gets a record for each confirm: the message's number, when, and how long it took.
"""

import select
import struct
import sys
import time
from pathlib import Path

import shmbroker

CONFIRMED = struct.Struct("3q")
BODY = struct.Struct("2q")


def main() -> None:
    url, name, producer, log = sys.argv[1:]
    with shmbroker.connect(url) as broker, Path(log).open("wb", buffering=0) as file:
        queue, number = broker.queue(name), 0
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            begin = time.monotonic_ns()
            queue.publish(BODY.pack(int(producer), number))  # returns when it is on disk
            end = time.monotonic_ns()
            file.write(CONFIRMED.pack(number, end, end - begin))
            number += 1


main()
