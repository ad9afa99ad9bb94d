"""Whether a participant is in the middle of a transaction, as its word in shared memory says."""

from __future__ import annotations

from pathlib import Path

from shmbroker.core import layout


def is_decided(vhost: str, owner: int) -> bool:
    """It is committed, and not all of it has happened."""
    at = layout.PARTICIPANTS_AT + owner * layout.PARTICIPANT_BYTES
    with Path(f"/dev/shm/shmbroker.{vhost}.participants").open("rb") as file:
        file.seek(at + layout.PARTICIPANT_TRANSACTION_AT)
        return int.from_bytes(file.read(8), "little") == layout.TRANSACTION_COMMITTED
