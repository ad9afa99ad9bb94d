"""The workspace of a run: the one name under which everything of it may exist, and its end.

Whatever a run leaves in /dev/shm, also when its processes were killed, carries the token and
is removed here. The directory is on /dev/shm too, so that a peer which maps files maps memory.
"""

import itertools
import os
import secrets
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

SHM = Path("/dev/shm")
_numbers = itertools.count()


def unique_token(of: str = "run") -> str:
    """A name that nobody else uses, good for a vhost."""
    return f"shmbperf-{of}-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(3)}"


class Workspace:
    """A context manager; ``left_behind`` names what the peer itself did not remove."""

    def __init__(self) -> None:
        self.token = unique_token()
        self.directory = SHM / f"{self.token}.dir"
        self.left_behind: list[str] = []

    def __enter__(self) -> Self:
        self.directory.mkdir(mode=0o700)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        for path in self._remains():
            self.left_behind.append(path.name)
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _remains(self) -> list[Path]:
        return [path for path in SHM.iterdir() if self.token in path.name]
