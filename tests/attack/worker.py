"""python -m tests.attack.worker ROLE VHOST LEDGERS NAME SEED QUEUE...: works until it is killed.

A worker that loses its broker connects again: after a cold start the vhost is another one.
"""

from __future__ import annotations

import random
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import shmbroker
from tests.attack import ledger

PATIENCE_S = 1.0


def body_of(name: str, bytes_min: int) -> bytes:
    """A body that proves what it is."""
    text = name.encode()
    filler = bytes((zlib.crc32(text) >> shift) & 255 for shift in (0, 8, 16, 24))
    return text + b"|" + (filler * (bytes_min // 4 + 1))[:bytes_min]


def name_of(body: bytes) -> str:
    """And back; a body that was changed is a name that nobody has tried."""
    text, _, rest = bytes(body).partition(b"|")
    whole = body_of(text.decode(errors="replace"), len(rest)) == body
    return text.decode(errors="replace") if whole else f"damaged:{text!r}"


class Worker:
    def __init__(self, ledgers: Path, name: str, seed: int) -> None:
        self.ledgers, self.name, self.random = ledgers, name, random.Random(seed)
        self.number = 0

    def ledger(self, queue: str) -> ledger.Writer:
        return ledger.Writer(self.ledgers / f"{queue}.{self.name}")

    def next_body(self) -> tuple[str, bytes]:
        self.number += 1
        name = f"{self.name}:{self.number}"
        return name, body_of(name, self.random.choice((8, 64, 64, 500, 3000)))

    def produce(self, broker: shmbroker.Broker, queue_name: str) -> None:
        queue, note = broker.queue(queue_name), self.ledger(queue_name).note
        while True:
            count = self.random.choice((1, 1, 1, 20))
            batch = [self.next_body() for _ in range(count)]
            names = [name for name, _ in batch]
            note(ledger.TRIED, *names)
            try:
                if count == 1:
                    queue.publish(batch[0][1], timeout=PATIENCE_S)
                elif queue.publish_many([body for _, body in batch], timeout=PATIENCE_S) != count:
                    continue  # some are there, and nobody says which are on disk
            except shmbroker.Unconfirmed:
                note(ledger.UNKNOWN, *names)
                continue
            except shmbroker.QueueFull:
                if count == 1:
                    note(ledger.REFUSED, *names)
                time.sleep(0.01)
                continue
            note(ledger.CONFIRMED, *names)

    def consume_in_order(self, broker: shmbroker.Broker, queue_name: str) -> None:
        self.consume(broker, queue_name, gives_back=0.0)

    def consume(self, broker: shmbroker.Broker, queue_name: str, gives_back: float = 0.02) -> None:
        queue, note = broker.queue(queue_name), self.ledger(queue_name).note
        while True:
            try:
                message = queue.get(timeout=PATIENCE_S)
            except shmbroker.Empty:
                continue
            name = name_of(message.body)
            note(ledger.SEEN, name)
            if self.random.random() < gives_back:
                message.give_back()
                continue
            try:
                message.ack()
            except shmbroker.DeliveryRevoked:
                note(ledger.REVOKED, name)
                continue
            note(ledger.ACKED, name)

    def transfer(self, broker: shmbroker.Broker, *names: str) -> None:
        """Tokens go from one queue to another, each in a transaction."""
        queues = [broker.queue(name) for name in names]
        while True:
            source, target = self.random.sample(queues, 2)
            try:
                with broker.transaction(timeout=PATIENCE_S) as tx:
                    for _ in range(self.random.choice((1, 1, 5))):
                        message = source.get(timeout=0.05)
                        body = bytes(message.body)
                        tx.ack(message)
                        tx.publish(target, body)
                    if self.random.random() < 0.1:
                        raise LookupError
            except (shmbroker.Empty, shmbroker.QueueFull, shmbroker.Unconfirmed, LookupError):
                continue
            except shmbroker.DeliveryRevoked:
                continue


def main(role: str, vhost: str, ledgers: str, name: str, seed: str, *queues: str) -> None:
    worker = Worker(Path(ledgers), name, int(seed))
    work: Callable[..., None] = getattr(worker, role)
    while True:
        try:
            with shmbroker.connect(f"shm://{vhost}", name=name) as broker:
                work(broker, *queues)
        except shmbroker.Error as error:
            sys.stderr.write(f"{time.monotonic_ns()} {name}: {type(error).__name__}: {error}\n")
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
