"""Proofs: both ends of a link show that they know a credential, and that this is their link.

    proof = HMAC(proof key, label, end, user, CURVE key of near, CURVE key of far, challenge)

The challenge is of the end that checks, new for each connection, so an old proof is worth nothing.
The end is in it, so a proof is not good for the other direction. Both CURVE keys are in it: who
stands in the middle has another key on at least one side, and what it passes on does not fit there.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role

CHALLENGE_BYTES: Final = 32
LABEL: Final = b"shmbroker proof 1"
NEAR: Final = b"near"
FAR: Final = b"far"


@dataclass(frozen=True, slots=True)
class Channel:
    """The public CURVE keys of the two ends, each as its own end has it of this connection."""

    near: bytes
    far: bytes


def _proof(keys: Stretched, end: bytes, channel: Channel, challenge: bytes) -> bytes:
    parts = (LABEL, end, keys.user.encode(), channel.near, channel.far, challenge)
    text = b"".join(len(each).to_bytes(4) + each for each in parts)
    return hmac.digest(keys.proof, text, "sha256")


def _matching(
    keys: Sequence[Stretched], end: bytes, channel: Channel, challenge: bytes, proof: bytes
) -> Stretched | None:
    """Those that made this proof; all are compared, in the same time."""
    found = None
    for each in keys:
        if hmac.compare_digest(_proof(each, end, channel, challenge), proof):
            found = each
    return found


class NearEnd:
    """Proves and verifies at the end that connects."""

    def __init__(
        self, credential: Credential, keys: Stretched, channel: Channel, challenge: bytes
    ) -> None:
        """`keys`: those of the credential by which the far end is reached.

        `challenge`: random, of 32 bytes, never used before.
        """
        assert len(challenge) == CHALLENGE_BYTES
        self.challenge = challenge
        self.user = credential.user
        self._keys = keys
        self._accepted = credential.keys
        self._channel = channel

    def answer(self, challenge: bytes) -> bytes:
        return _proof(self._keys, NEAR, self._channel, challenge)

    def check(self, proof: bytes) -> bool:
        found = _matching(self._accepted, FAR, self._channel, self.challenge, proof)
        return found is not None


class FarEnd:
    """Verifies and proves at the end that was connected to, among all its credentials."""

    def __init__(self, credentials: Credentials, channel: Channel, challenge: bytes) -> None:
        assert len(challenge) == CHALLENGE_BYTES
        self.challenge = challenge
        self.admitted: Stretched | None = None
        """The keys that were proved."""
        self.channel = channel
        self.credentials = credentials
        """As they are by now: who shakes hands proves by these."""
        self._claimed: tuple[str, Role] | None = None

    def claim(self, user: str, role: Role) -> None:
        """What the near end says of itself; it counts when it is proved."""
        self._claimed = user, role

    def check(self, proof: bytes) -> bool:
        found = None if self._claimed is None else self.credentials.find(*self._claimed)
        keys = () if found is None else found.keys
        self.admitted = _matching(keys, NEAR, self.channel, self.challenge, proof)
        return self.admitted is not None

    def answer(self, challenge: bytes) -> bytes:
        """Only to who has proved: a stranger is told nothing that a password could be tried on."""
        if self.admitted is None:
            raise PermissionError("nothing is proved to a stranger")
        return _proof(self.admitted, FAR, self.channel, challenge)
