"""A wire that is slow, and loses and reorders: between two tun devices, each on a host of its own.

This kernel has no netem.  A process of ours takes each packet from one device and writes it to the
other one when it is due.  It is Python, so it has a limit of its own: `limit` measures it.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from shmbroker.perf.machine.process import Process
from tests.support.hosts import Host, two_hosts

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_BYTES = 65536
DEVICE = "wire"


@dataclass(frozen=True, slots=True)
class Wire:
    """Each way.  Seconds, and shares of the packets."""

    delay: float = 0.0
    jitter: float = 0.0
    """Up to so much more, drawn for each packet: so they overtake each other."""
    loss: float = 0.0
    seed: int = 0


def _device(host: Host) -> int:
    """It is on the host where it was opened; the descriptor is ours."""
    with host.entered():
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        wanted = struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI)
        fcntl.ioctl(device, TUNSETIFF, wanted)
    host.run("ip", "address", "add", f"{host.address}/24", "dev", DEVICE)
    host.run("ip", "link", "set", DEVICE, "up")
    return device


def _forward(devices: tuple[int, int], wire: Wire) -> int:
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
                    at = time.monotonic() + wire.delay + wire.jitter * random.random()
                    heapq.heappush(due, (at, count, other[device], packet))
                    count += 1
            except BlockingIOError:
                pass
        now = time.monotonic()
        while due and due[0][0] <= now:
            _, _, device, packet = heapq.heappop(due)
            with suppress(BlockingIOError):  # a full device drops, as a wire does
                os.write(device, packet)


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
