"""Why the pager cannot go on, in the words of its log."""

from __future__ import annotations

import errno
import os
from typing import Final

from shmbroker.core.codes import DISK_FULL, SYSTEM
from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.detail import detail_of

FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""There may be room later: on the disk, in the quota, or by the limit of a file's size."""


class Refused(Exception):
    """By the system, by another broker, or by memory that contradicts itself."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def refused(error: OSError, doing: str) -> Refused:
    code = DISK_FULL if error.errno in FULL_DISK else SYSTEM
    return Refused(code, f"{error.strerror}, {doing}")


def allowed(code: int, text: str = "") -> int:
    """The answer of C, if it is no refusal."""
    if code < 0:
        why = text or detail_of(code) or os.strerror(ffi.errno) * (code == SYSTEM)
        raise Refused(code, why)
    return code
