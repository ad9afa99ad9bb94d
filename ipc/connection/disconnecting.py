"""Disconnecting another participant: it is told to leave, and what it has in hand goes to others.

It leaves when it finds out: when it settles one of those messages, or waits.
"""

from __future__ import annotations

import time
from typing import Final

from shmbroker.core.codes import NOT_FOUND, OK
from shmbroker.ipc._native import lib
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.vhost.participants import ParticipantInfo

NAP_SECONDS: Final = 0.05


def disconnected(broker: Broker, of: ParticipantInfo, timeout: float) -> bool:
    """Whether it has left in that time; what it takes meanwhile is given back, too.

    InvalidArgument: it looks after the vhost, as a broker does.
    """
    ends_at = time.monotonic() + timeout
    while True:
        code = lib.sb_participant_disconnect(broker._connection, of.id, of.connected_at)
        if code == NOT_FOUND:
            return True
        if code < OK:
            raise broker._error(code, f"disconnecting participant {of.id}")
        if time.monotonic() >= ends_at:
            return False
        time.sleep(NAP_SECONDS)
