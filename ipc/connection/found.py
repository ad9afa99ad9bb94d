"""What a connection has repaired and found, for the logger `shmbroker` of `logging`.

C writes it into the log of the vhost; a wait looks every 100 ms whether something of it is ours.
"""

from __future__ import annotations

import logging

from shmbroker.ipc.vhost.participants import Participants

logger = logging.getLogger("shmbroker")
logger.addHandler(logging.NullHandler())


def tell(vhost: str, participants: Participants, noted: int) -> None:
    """The entries of the log whose bits are set."""
    for index in range(noted.bit_length() if noted >= 0 else 64):
        if noted >> index & 1 and (entry := participants.error(index)):
            logger.warning("vhost %r: %s", vhost, entry.text)
