"""HdrHistogram's V2 payload, written: for fleets that are made up, and for tests."""

from __future__ import annotations

import zlib
from base64 import b64encode

import numpy as np

from shmbroker.perf.spark.geometry import Geometry
from shmbroker.perf.spark.hlog import INNER, OUTER, V2, V2_COMPRESSED


def encoded(geometry: Geometry, indexes: np.ndarray, counts: np.ndarray) -> str:
    """Base64, as it stands in a log; indexes ascend."""
    body = bytearray()
    at = 0
    for index, count in zip(indexes.tolist(), counts.tolist(), strict=True):
        if index > at:
            body += varint(at - index)
        body += varint(count)
        at = index + 1
    lowest, highest, digits = geometry.lowest, geometry.highest, geometry.digits
    payload = zlib.compress(INNER.pack(V2, len(body), 0, digits, lowest, highest, 1.0) + body, 1)
    return b64encode(OUTER.pack(V2_COMPRESSED, len(payload)) + payload).decode()


def varint(value: int) -> bytes:
    """ZigZag LEB128; the ninth byte has eight bits."""
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    while left >= 0x80 and len(out) < 8:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
