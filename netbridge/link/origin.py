"""The origin of a link's stream: who sends it, out of which ring, in which history.

A new history begins whenever positions of the ring may be used twice.  With another history it is
another origin, of which the target has no mark: nothing of it is dropped as known.
"""

from __future__ import annotations

from hashlib import blake2b

from shmbroker.netbridge.wire.frame import ID_BYTES


def origin_of(node: bytes, link: str, ring: bytes, history: int) -> bytes:
    """`ring`: the incarnation of the queue that is shipped."""
    parts = (node, link.encode(), ring, history.to_bytes(8, "little"))
    text = b"".join(len(part).to_bytes(2, "little") + part for part in parts)
    return blake2b(text, digest_size=ID_BYTES).digest()
