"""A wire that is slow, and loses and reorders: between two tun devices, each on a host of its own;
or between two tap devices, where it may become slow and quick again (`SlowRack`).

This kernel has no netem.  A process of ours takes each packet from one device and writes it to the
other one when it is due.  It is Python, so it has a limit of its own: `limit` measures it.
"""

from __future__ import annotations

import errno
import fcntl
import heapq
import mmap
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from shmbroker.perf.machine.process import Process
from tests.support.hosts import Host, Rack, two_hosts

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_TAP, IFF_NO_PI = 0x0001, 0x0002, 0x1000
PACKET_BYTES = 65536
DEVICE = "wire"
DROPPED = (errno.EAGAIN, errno.EIO)
"""A device that is full, or is not up yet, drops what it is given, as a wire does."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Each way.  Seconds, and shares of the packets."""

    delay: float = 0.0
    jitter: float = 0.0
    """Up to so much more, drawn for each packet: so they overtake each other."""
    loss: float = 0.0
    seed: int = 0


def _opened(host: Host, name: str, kind: int) -> int:
    """It is on the host where it was opened; the descriptor is ours."""
    with host.entered():
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), kind | IFF_NO_PI))
    return device


def _device(host: Host) -> int:
    device = _opened(host, DEVICE, IFF_TUN)
    host.run("ip", "address", "add", f"{host.address}/24", "dev", DEVICE)
    host.run("ip", "link", "set", DEVICE, "up")
    return device


class Delay:
    """Of a wire, while it forwards: shared with the process that does."""

    def __init__(self) -> None:
        self._shared = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")

    @property
    def seconds(self) -> float:
        return self._shared[0]

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        self._shared[0] = seconds


def _forward(devices: tuple[int, int], wire: Wire, delay: Delay | None = None) -> int:
    random, due = Random(wire.seed), list[tuple[float, int, int, bytes]]()
    poll, count = select.poll(), 0
    for device in devices:
        poll.register(device, select.POLLIN)
    other = {devices[0]: devices[1], devices[1]: devices[0]}
    while True:
        wait = max(0.0, due[0][0] - time.monotonic()) * 1000 if due else None
        for device, _ in poll.poll(wait):
            try:
                while True:
                    packet = os.read(device, PACKET_BYTES)
                    if random.random() < wire.loss:
                        continue
                    more = delay.seconds if delay is not None else wire.delay
                    at = time.monotonic() + more + wire.jitter * random.random()
                    heapq.heappush(due, (at, count, other[device], packet))
                    count += 1
            except BlockingIOError:
                pass
        now = time.monotonic()
        while due and due[0][0] <= now:
            _, _, device, packet = heapq.heappop(due)
            try:
                os.write(device, packet)
            except OSError as error:
                if error.errno not in DROPPED:
                    raise


@contextmanager
def forwarded(wire: Wire, folder: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts with this wire between them."""
    with two_hosts() as (near, far):
        devices = _device(near), _device(far)
        forwarder = Process(lambda: _forward(devices, wire), folder / "forwarder.errors")
        try:
            yield near, far
        finally:
            forwarder.kill()
            for device in devices:
                os.close(device)


class SlowRack(Rack):
    """Its wires can be delayed, each by itself."""

    def __init__(self, opened: ExitStack, names: Sequence[str], folder: Path) -> None:
        self.delays: dict[str, Delay] = {}
        self._folder = folder
        super().__init__(opened, names)

    def _plug(self, opened: ExitStack, switch: Host, port: str, name: str) -> None:
        devices = _opened(switch, port, IFF_TAP), _opened(self.hosts[name], DEVICE, IFF_TAP)
        for device in devices:
            opened.callback(os.close, device)
        delay = self.delays[name] = Delay()
        work = partial(_forward, devices, Wire(), delay)
        opened.callback(Process(work, self._folder / f"wire of {name}.errors").kill)

    def heal(self) -> None:
        super().heal()
        for each in self.delays.values():
            each.seconds = 0.0


def limit(folder: Path, seconds: float = 1.0, size: int = 1400) -> tuple[float, float]:
    """What the forwarder itself takes: packets a second, and the delay of one alone, in seconds."""
    with forwarded(Wire(), folder) as (near, far):
        with far.entered():
            taking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            taking.bind((far.address, 0))
        with near.entered():
            giving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            giving.connect(taking.getsockname())
        with taking, giving:
            delays = sorted(_alone(giving, taking) for _ in range(100))
            taking.setblocking(False)
            arrived, began = 0, time.perf_counter()
            while time.perf_counter() < began + seconds:
                for _ in range(16):
                    giving.send(bytes(size))
                try:
                    while taking.recv(size):
                        arrived += 1
                except BlockingIOError:
                    pass
            return arrived / (time.perf_counter() - began), delays[50]


def _alone(giving: socket.socket, taking: socket.socket) -> float:
    began = time.perf_counter()
    giving.send(b"x")
    taking.recv(1)
    return time.perf_counter() - began
