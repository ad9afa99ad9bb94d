"""What the sink calls on a port: pouring records, in memory that grows (core/pour.py)."""

from __future__ import annotations

from shmbroker.core.atomics import load
from shmbroker.core.codes import NEEDS_COMMIT, OK
from shmbroker.core.kernel import exported_cold
from shmbroker.core.layout import POURING_AT, POURING_COUNT, POURING_END
from shmbroker.core.pour import pour_once
from shmbroker.core.record import record_length
from shmbroker.ipc.ring.growth import commit
from shmbroker.ipc.ring.waiting import tell_consumers


@exported_cold
def pour(port: int, pouring: int) -> int:
    """Publish records to the end: OK, or what the record at POURING_AT was answered."""
    before = load(pouring + POURING_COUNT)
    code = OK
    while code == OK and load(pouring + POURING_AT) < load(pouring + POURING_END):
        code = pour_once(port, pouring)
        if code == NEEDS_COMMIT:
            code = commit(port, record_length(load(pouring + POURING_AT)))
    if load(pouring + POURING_COUNT) > before:
        tell_consumers(port)
    return code
