"""The keys of a credential: user and password, stretched, so that guessing one is slow.

    seed       = scrypt(password, salt = a label and the user)
    listening  = HMAC(seed, "listening")    the secret CURVE key of an acceptor
    proof      = HMAC(seed, "proof")        what both ends show that they know
    announcing = HMAC(seed, "announcing")   what signs an announcement (signature.py)

Who knows user and password knows the public key of the acceptor before the first byte, so nothing
is fetched, and whoever does not know them gets no answer. The salt is the user, because that is all
that a program knows of a broker beside its address.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

COST: Final = 1 << 15
BLOCK: Final = 8
MEMORY_BYTES: Final = 64 << 20
KEY_BYTES: Final = 32
LABEL: Final = b"shmbroker link 1\0"


class Stretched:
    """Made once for a credential: it takes some 100 ms and 32 MiB."""

    __slots__ = ("_seed", "user")

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self._seed = hashlib.scrypt(
            password.encode(), salt=LABEL + user.encode(), n=COST, r=BLOCK, p=1,
            maxmem=MEMORY_BYTES, dklen=KEY_BYTES,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stretched) and (self.user, self._seed) == (other.user, other._seed)

    def __hash__(self) -> int:
        return hash((self.user, self._seed))

    def __repr__(self) -> str:
        return f"Stretched({self.user!r}, ***)"

    def __reduce__(self) -> str:
        raise TypeError("keys are not pickled")

    @property
    def listening(self) -> bytes:
        return self._derived(b"listening")

    @property
    def proof(self) -> bytes:
        return self._derived(b"proof")

    @property
    def announcing(self) -> bytes:
        return self._derived(b"announcing")

    def _derived(self, what: bytes) -> bytes:
        return hmac.digest(self._seed, what, "sha256")
