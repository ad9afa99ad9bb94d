"""Errors of the operating system as text: which file, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HINTS: Final = {
    errno.EISDIR: "a folder is where a file should be: move it away",
    errno.ENOTDIR: "a file is where a folder should be: move it away",
    errno.EACCES: "the user that runs this must be allowed to read and write it",
    errno.EPERM: "the user that runs this must be allowed to read and write it",
    errno.EROFS: "it must be writable",
    errno.ELOOP: "a link is where a file should be: move it away",
    errno.EMFILE: "raise the limit of open files (ulimit -n; LimitNOFILE= in a unit)",
    errno.ENFILE: "the machine has too many open files: raise fs.file-max",
    errno.EIO: "the disk fails, or is gone: see the log of the kernel (dmesg)",
}


@contextmanager
def about(path: Path) -> Iterator[None]:
    """An OSError of a descriptor knows no name: it is this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def told(error: Exception) -> str:
    """For people; an OSError with its file, and what to do about it."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    # of a renaming, the second name is the one that somebody knows
    name = error.filename2 or error.filename
    where = "the system" if name is None else os_name(name)
    hint = HINTS.get(error.errno or 0)
    return f"{where}: {error.strerror}" + (f"; {hint}" if hint else "")


def os_name(name: object) -> str:
    """As text that can be written anywhere: a name may be any bytes."""
    text = name if isinstance(name, bytes) else str(name).encode(errors="surrogateescape")
    return text.decode(errors="replace")
