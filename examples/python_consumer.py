"""A consumer in plain Python: python_consumer.py NAME OWNER

Takes until an empty message, prints how many and their sum.
"""

import os
import sys

from shmbroker import Ring


def main() -> None:
    name, owner = sys.argv[1], int(sys.argv[2])
    count = total = 0
    with Ring.attach(name) as ring:
        port = ring.port(owner)
        print("ready", flush=True)
        while True:
            message = port.try_take()
            if message is None:
                os.sched_yield()
                continue
            with message:  # acknowledged on a clean exit, given back on an exception
                if not len(message.view):
                    break
                total += int.from_bytes(message.view[:8], "little")
                count += 1
    print(count, total)


main()
