"""Key pairs of CURVE, as raw bytes. zmq is imported when one is needed, and decides nothing."""

from __future__ import annotations

from typing import Final

KEY_BYTES: Final = 32


def public_of(secret: bytes) -> bytes:
    """The public key that belongs to a secret one."""
    import zmq
    from zmq.utils import z85

    assert len(secret) == KEY_BYTES
    return bytes(z85.decode(zmq.curve_public(z85.encode(secret))))


def new_pair() -> tuple[bytes, bytes]:
    """Public and secret, at random."""
    import zmq
    from zmq.utils import z85

    public, secret = zmq.curve_keypair()
    return bytes(z85.decode(public)), bytes(z85.decode(secret))
