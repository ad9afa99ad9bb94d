"""What a broker tells an instance that is to join it: `create --join URI`.

It is asked by a program over a link, which proves that it knows the password of the brokers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument, NotAllowed
from shmbroker.ipc.instance.config.config import FILE, read_file
from shmbroker.netbridge.config.template import invitation
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.security.joining import CHALLENGE_BYTES, may_join, proof_of
from shmbroker.netbridge.security.stretched import Stretched

INVITE: Final = "invite"
"""The verb of the order."""


def asked(user: str, password: str) -> dict[str, Any]:
    """The order of somebody who knows both."""
    challenge = os.urandom(CHALLENGE_BYTES)
    proof = proof_of(Stretched(user, password), challenge)
    return {"brokers": user, "challenge": challenge.hex(), "proof": proof.hex()}


def invited(folder: Path, known: Credentials, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the file of this instance says; NotAllowed if the password is another one."""
    try:
        challenge, proof = (bytes.fromhex(given[each]) for each in ("challenge", "proof"))
        user = str(given["brokers"])
    except (KeyError, TypeError, ValueError):
        raise InvalidArgument("an instance that joins says user, challenge and proof") from None
    if not may_join(known, user, challenge, proof):
        raise NotAllowed(
            f"{user!r} and this password are not those by which these brokers know each other: "
            "--cluster-user NAME --cluster-password-file FILE"
        )
    return invitation(read_file(folder / FILE))
