"""Whether an error means a full disk: then waiting helps."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import DiskFull
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.instance import status

ERRNOS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No room on the disk, in the user's quota, or by the limit of a file's size."""

RETRY_SECONDS: Final = 0.5


def is_full(error: BaseException | None) -> bool:
    """Or what it was raised from."""
    while error is not None:
        if isinstance(error, DiskFull):
            return True
        if isinstance(error, OSError) and error.errno in ERRNOS:
            return True
        error = error.__cause__
    return False


def findings(folder: Path) -> Iterator[Finding]:
    """Of a broker that waits for room, as it says itself."""
    why = status.read(folder).why
    if "disk full: " in why:
        problem = f"it confirms nothing until there is room: {why}"
        remedy = "make room on that disk, or consume; it goes on by itself: docs/runbooks.md"
        yield Finding("error", f"broker {folder}", problem, remedy)
