"""A consumer in plain Python: python_consumer.py URL QUEUE TALLY

Takes messages until an empty one comes, and notes in the file TALLY how long each took.
"""

import struct
import sys
import time

import tally

import shmbroker


def main() -> None:
    url, name, path = sys.argv[1:]
    got, count = tally.attach(path), 0
    with shmbroker.connect(url) as broker:
        queue = broker.queue(name)
        print("ready", flush=True)
        # each is acknowledged when the next is asked for; if we die, somebody else gets it
        for message in queue.consume(prefetch=32):
            if not message.body:
                message.ack()
                break
            number, sent = struct.unpack_from("qq", message.body)
            took = time.monotonic_ns() - sent
            got[number] = -took if message.deliveries else took
            count += 1
    print(count, "messages")


main()
