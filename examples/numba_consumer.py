"""A consumer compiled by Numba: the verbs are inlined into the loop.

numba_consumer.py NAME OWNER: takes until an empty message, prints how many and their sum.
"""

import sys

import numpy as np
from numba import njit

from shmbroker import Ring
from shmbroker.kernels import ack, pause, take, view, yield_processor


@njit
def consume(port, message):
    count = 0
    total = 0
    idle = 0
    while True:
        if take(port, message.ctypes.data) != 0:
            idle += 1
            pause()
            if idle % 1000 == 0:
                yield_processor()
            continue
        length = message[3]
        if length == 0:
            ack(port, message.ctypes.data)
            return count, total
        total += view(message[2], length).view(np.int64)[0]
        count += 1
        ack(port, message.ctypes.data)


def main() -> None:
    name, owner = sys.argv[1], int(sys.argv[2])
    with Ring.attach(name) as ring:
        port = ring.port(owner)
        message = np.zeros(8, np.int64)
        consume.compile("(int64, int64[::1])")
        print("ready", flush=True)
        print(*consume(port.address, message))


main()
