"""What stands in live.lock: who is live, or was, and how that ended.

    bytes 0-15    the epoch, hexadecimal: the journaler looks at it before it writes
    then          the rest as JSON, padded to one sector, which a disk writes as a whole

Only who holds the lock writes it, in one write, and syncs it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from shmbroker.ipc.errors import Error
from shmbroker.ipc.instance.process import Process

BYTES: Final = 512
EPOCH_DIGITS: Final = 16

NONE: Final = "none"
LIVE: Final = "live"
STOPPED: Final = "stopped"
HANDED_OVER: Final = "handed over"
ENDS: Final = (NONE, LIVE, STOPPED, HANDED_OVER)
"""Nobody was live yet; somebody is, or has crashed; was stopped; was stopped for another one."""


class RecordDamaged(Error):
    """live.lock does not say who is live."""


@dataclass(frozen=True, slots=True)
class Record:
    epoch: int = 0
    state: str = NONE
    instance: str = ""
    process: Process | None = None
    rings: int = 0
    """The identity of the vhost whose rings are what the journal is written from; 0: none yet."""

    @property
    def calls_for_backup(self) -> bool:
        """Somebody was live, and nobody has said that he shall not be replaced."""
        return self.state in (LIVE, HANDED_OVER)

    def encoded(self) -> bytes:
        fields = asdict(self)
        epoch = f"{fields.pop('epoch'):0{EPOCH_DIGITS}x}\n"
        text = epoch + json.dumps(fields, separators=(",", ":"))
        encoded = text.encode().ljust(BYTES - 1) + b"\n"
        if len(encoded) > BYTES:
            raise RecordDamaged(f"the name {self.instance!r} is too long for live.lock")
        return encoded


def decoded(content: bytes) -> Record:
    """RecordDamaged if it is not one: it may be just being written, then look again."""
    try:
        epoch, rest = content[:EPOCH_DIGITS], content[EPOCH_DIGITS:]
        fields = json.loads(rest)
        process = fields.pop("process")
        record = Record(epoch=int(epoch, 16), process=process and Process(**process), **fields)
    except (ValueError, TypeError, KeyError) as error:
        raise RecordDamaged(f"live.lock holds {content[:80]!r}...: {error}") from None
    if record.state not in ENDS:
        raise RecordDamaged(f"live.lock knows a state {record.state!r}: is it of a later version?")
    return record
