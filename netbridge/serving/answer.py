"""What comes of a verb that is carried out in one go."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.core.codes import OK
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.words import Level


@dataclass(frozen=True, slots=True)
class Answer:
    code: int = OK
    value: int = 0
    body: Body = b""
    level: Level = Level.SHM
