"""Who may join: it proves that it knows the user and password by which brokers know each other.

    proof = HMAC(proof key, label, challenge)

It goes over a link that is encrypted, to a broker that has proved itself to a program, so whoever
joins draws the challenge itself.  The password is sent nowhere.
"""

from __future__ import annotations

import hmac
from typing import Final

from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role

CHALLENGE_BYTES: Final = 32
LABEL: Final = b"shmbroker joining 1\0"
ROLES: Final = (Role.REPLICA, Role.CLUSTER)


def proof_of(keys: Stretched, challenge: bytes) -> bytes:
    return hmac.digest(keys.proof, LABEL + challenge, "sha256")


def may_join(known: Credentials, user: str, challenge: bytes, proof: bytes) -> bool:
    """`known`: those of the broker that is joined."""
    found = [credential for role in ROLES if (credential := known.find(user, role)) is not None]
    keys = {each for credential in found for each in credential.keys}
    fit = [hmac.compare_digest(proof_of(each, challenge), proof) for each in keys]
    return len(challenge) == CHALLENGE_BYTES and any(fit)
