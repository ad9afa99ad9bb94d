"""What scrypt makes of the passwords of tests is kept for a run: it takes 100 ms each, by design.

It is a function of its arguments, so nothing else is tested than without.  Brokers are forked from
the tests, and find in a folder what others have made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "TESTS_STRETCHED"
"""The variable that tells workers of the folder of their run."""
_scrypt: Final = hashlib.scrypt


def _kept(password: bytes, *, salt: bytes, **of: Any) -> bytes:
    name = hashlib.sha256(repr((password, salt, sorted(of.items()))).encode()).hexdigest()
    path = Path(os.environ[FOLDER], name)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        made = _scrypt(password, salt=salt, **of)
    part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
    try:
        part.write_bytes(made)
        part.rename(path)
    except OSError:  # the disk of this test is full, or the run is over
        part.unlink(missing_ok=True)
    return made


def keep() -> bool:
    """Whether this process is the first of its run."""
    is_first = FOLDER not in os.environ
    if is_first:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="shmbroker-tests-")
    vars(hashlib)["scrypt"] = _kept
    return is_first


def forget() -> None:
    shutil.rmtree(os.environ.pop(FOLDER))
