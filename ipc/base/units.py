"""Sizes and times as people write them: 64KiB, 50us."""

from __future__ import annotations

import re

KIB = 1024
SIZES = {
    "": 1, "b": 1,
    "k": KIB, "ki": KIB, "kib": KIB, "kb": 1000,
    "m": KIB**2, "mi": KIB**2, "mib": KIB**2, "mb": 1000**2,
    "g": KIB**3, "gi": KIB**3, "gib": KIB**3, "gb": 1000**3,
    "t": KIB**4, "ti": KIB**4, "tib": KIB**4, "tb": 1000**4,
}  # fmt: skip
DURATIONS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3,
    "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip

SIZE_MAX = 2**63 - 1
"""What 64 bits hold."""
SECONDS_MAX = 1e9
"""Thirty years."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµμ]*)")


def scaled(text: str, units: dict[str, int] | dict[str, float]) -> float:
    """The number times its unit; ValueError if it is not one of these."""
    match = NUMBER.fullmatch(text.strip().lower())
    if match is None or match[2] not in units:
        raise ValueError(text)
    return float(match[1]) * units[match[2]]


def parse_size(text: str) -> int:
    """Bytes."""
    size = scaled(text, SIZES)
    if size > SIZE_MAX or size != int(size):
        raise ValueError(text)
    return min(int(size), SIZE_MAX)


def parse_duration(text: str) -> float:
    """Seconds."""
    seconds = scaled(text, DURATIONS)
    if seconds > SECONDS_MAX:
        raise ValueError(text)
    return seconds
