"""The raw limits take part like any other contestant, in the same rounds."""

from shmbroker.perf.contestant import Contestant
from shmbroker.perf.raw.cacheline import RawCacheline, RawFutex
from shmbroker.perf.raw.memcpy import RawMemcpy

CONTESTANTS: tuple[Contestant, ...] = (RawCacheline(), RawFutex(), RawMemcpy())
