"""A producer and a consumer that is slow for a while: paced_load.py URL QUEUE SECONDS [FROM TO]

500 messages a second.  From FROM to TO, in seconds since the beginning, the consumer takes 3 ms for
each message, which is too long.
"""

import sys
import threading
import time

import shmbroker

GAP = 0.002
SLOW = 0.003


def produce(url: str, name: str, end: float) -> None:
    with shmbroker.connect(url) as broker:
        queue, due = broker.queue(name), time.monotonic()
        while due < end:
            queue.publish(b"x" * 64)
            due += GAP
            time.sleep(max(0.0, due - time.monotonic()))
        queue.publish(b"")


def main() -> None:
    url, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    begun = time.monotonic()
    slow = [begun + float(each) for each in sys.argv[4:]] or [0.0, 0.0]
    threading.Thread(target=produce, args=(url, name, begun + seconds)).start()
    with shmbroker.connect(url) as broker:
        for message in broker.queue(name).consume():
            if not message.body:
                message.ack()
                break
            if slow[0] <= time.monotonic() < slow[1]:
                time.sleep(SLOW)


main()
