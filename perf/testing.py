"""A contestant that misbehaves on purpose: the harness must notice."""

import struct

from shmbroker.perf.contestants.mp_pipe import Ends, MpPipe
from shmbroker.perf.plan import Plan
from shmbroker.perf.port import Port
from shmbroker.perf.topology import Seat


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
