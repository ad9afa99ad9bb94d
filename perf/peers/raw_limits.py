"""The raw limits take part like any other peer, in the same rounds."""

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.raw.cacheline import RawCacheline, RawFutex
from shmbroker.perf.raw.memcpy import RawMemcpy

PEERS: tuple[Peer, ...] = (RawCacheline(), RawFutex(), RawMemcpy())
