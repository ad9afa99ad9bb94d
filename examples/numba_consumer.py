"""A consumer compiled by Numba, with the verbs inlined: numba_consumer.py URL QUEUE TALLY

Takes messages until an empty one comes, and notes in the file TALLY how long each took.
"""

import sys

import numpy as np
import tally
from numba import njit

import shmbroker
from shmbroker.core.layout import DELIVERIES_FIELD, MARK_DELIVERIES_MASK
from shmbroker.kernels import ack, clock, take, view, wait_for_message

WORD, BODY, LENGTH, MARK = 1, 2, 3, 6  # of sb_message, in shmbroker.h
FOREVER = 1 << 62


@njit
def consume(port, message, got):
    """True: the end has come.  False: nothing came for a while, or a signal did."""
    here = message.ctypes.data
    while True:
        while take(port, here) != 0:  # spins for a moment where it pays, then sleeps in the kernel
            if wait_for_message(port, FOREVER) != 0:
                return False
        if message[LENGTH] == 0:
            ack(port, here)
            return True
        body = view(message[BODY], message[LENGTH]).view(np.int64)
        took = clock() - body[1]
        again = message[WORD] & DELIVERIES_FIELD | message[MARK] & MARK_DELIVERIES_MASK
        got[body[0]] = -took if again else took
        ack(port, here)


def main() -> None:
    url, name, path = sys.argv[1:]
    got = np.frombuffer(tally.attach(path), np.int64)
    message = np.zeros(8, np.int64)
    consume.compile("(int64, int64[::1], int64[::1])")
    with shmbroker.connect(url) as broker:
        port = broker.queue(name).port()
        print("ready", flush=True)
        while not consume(port.address, message, got):
            broker.repair()  # what dead consumers had in hand becomes ours
    print(np.count_nonzero(got), "messages")


main()
