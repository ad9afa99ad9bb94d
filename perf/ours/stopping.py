"""Telling competing receivers that there is no more."""

import time

from shmbroker import QueueFull
from shmbroker.ipc.ring.port import Port
from shmbroker.perf.harness.gate import Gate
from shmbroker.perf.harness.loops import STOP_PAUSE_S
from shmbroker.perf.harness.payload import STOP


def stop_receivers(port: Port, gate: Gate) -> None:
    """Until each has one: a batch may swallow several."""
    while missing := gate.missing():
        try:
            for _ in range(missing):
                port.publish(STOP, 0)
        except QueueFull:
            pass  # they have much to do still
        time.sleep(STOP_PAUSE_S)
