"""A consumer of the messages of durable_producer: durable_consumer.py URL QUEUE LOG

LOG gets a record for each message: its producer, its number, and how often it came before.  An
empty message is the end.
"""

import struct
import sys
from pathlib import Path

import shmbroker

CONSUMED = struct.Struct("3q")
BODY = struct.Struct("2q")


def main() -> None:
    url, name, log = sys.argv[1:]
    with shmbroker.connect(url) as broker, Path(log).open("wb", buffering=0) as file:
        print("ready", flush=True)
        for message in broker.queue(name).consume():
            if not message.body:
                message.ack()
                break
            file.write(CONSUMED.pack(*BODY.unpack(message.body), message.deliveries))


main()
