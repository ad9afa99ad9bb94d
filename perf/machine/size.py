"""Message sizes as people write them: ``64``, ``1KiB``, ``1MiB``."""

import re

_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_WRITTEN = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)

STAMP_BYTES = 8
"""Every message begins with its stamp, so no message is shorter."""


def parse_size(text: str) -> int:
    """Bytes of a written size; a ValueError says what would have been understood."""
    match = _WRITTEN.fullmatch(text)
    unit = match and _UNITS.get(match[2].lower())
    if not match or not unit:
        raise ValueError(f"size {text!r} is not understood: write it like 64, 1KiB or 1MiB")
    size = int(match[1]) * unit
    if size < STAMP_BYTES or size % STAMP_BYTES:
        raise ValueError(f"size {text!r} must be a positive multiple of {STAMP_BYTES} bytes")
    return size


def format_size(size: int) -> str:
    """The shortest exact way to write a size."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"
