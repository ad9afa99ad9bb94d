"""Peers that misbehave on purpose: the harness must notice."""

import ctypes
import struct
from typing import Any

from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.ours.compiled_peer import CompiledLoop, LoopName
from shmbroker.perf.ours.job import Job
from shmbroker.perf.peers.mp_pipe import Ends, MpPipe
from shmbroker.perf.peers.ours_c import OursC
from shmbroker.perf.peers.ours_numba import OursNumba


class CorruptingPipe(MpPipe):
    """Delivers the right number of messages, with one stamp too high in the first of them."""

    name = "corrupting-pipe"

    def open_port(self, seat: Seat, endpoint: Ends, plan: Plan) -> Port:
        port = super().open_port(seat, endpoint, plan)
        damaged = False

        def send(message: bytes) -> object:
            nonlocal damaged
            if not damaged:
                damaged = True
                (stamp,) = struct.unpack_from("<q", message)
                message = struct.pack("<q", stamp + 1) + message[8:]
            return port.send(message)

        return Port(send=send, receive=port.receive, close=port.close)


class SilentPipe(MpPipe):
    """Accepts every message and delivers none."""

    name = "silent-pipe"

    def open_port(self, seat: Seat, endpoint: Ends, plan: Plan) -> Port:
        port = super().open_port(seat, endpoint, plan)
        return Port(send=lambda message: None, receive=port.receive, close=port.close)


class CorruptingC(OursC):
    """Sends good stamps, but one byte that is wrong in each message."""

    name = "corrupting-c"

    def load(self, name: LoopName, made: Any) -> CompiledLoop:
        return _corrupting(super().load(name, made)) if name == "send" else super().load(name, made)


class CorruptingNumba(OursNumba):
    """The same."""

    name = "corrupting-numba"

    def load(self, name: LoopName, made: Any) -> CompiledLoop:
        return _corrupting(super().load(name, made)) if name == "send" else super().load(name, made)


def _corrupting(loop: CompiledLoop) -> CompiledLoop:
    def corrupt(job: Job) -> int:
        for row in range(job.rows):
            ctypes.memset(job.source + (row + 1) * job.size - 1, 0xFF, 1)  # in no pattern
        return loop(job)

    return corrupt
