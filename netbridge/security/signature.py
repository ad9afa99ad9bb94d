"""Signatures of what is said to many at once: who knows a credential can make and check them.

    signature = HMAC(HMAC(seed, "announcing"), label, place, text)

The place is where it is said, so that what was heard at one place counts at no other.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Final

from shmbroker.netbridge.security.stretched import Stretched

LABEL: Final = b"shmbroker announcement 1"
SIGNATURE_BYTES: Final = 32


class Signature:
    __slots__ = ("_keys", "_place")

    def __init__(self, keys: Sequence[Stretched], place: str) -> None:
        """Made with the first of them; all of them are accepted."""
        self._keys = tuple(each.announcing for each in keys)
        self._place = place.encode()

    def of(self, text: bytes) -> bytes:
        return self._made(self._keys[0], text)

    def is_of(self, text: bytes, signature: bytes) -> bool:
        """All keys are tried, in the same time."""
        found = [hmac.compare_digest(self._made(each, text), signature) for each in self._keys]
        return any(found)

    def _made(self, key: bytes, text: bytes) -> bytes:
        parts = (LABEL, self._place, text)
        whole = b"".join(len(each).to_bytes(4) + each for each in parts)
        return hmac.digest(key, whole, "sha256")

    def __repr__(self) -> str:
        return f"Signature({self._place!r}, ***)"

    def __reduce__(self) -> str:
        raise TypeError("keys are not pickled")
