"""Whether an error means a full disk: then waiting helps."""

from __future__ import annotations

import errno
from typing import Final

from shmbroker.ipc.base.errors import DiskFull

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
