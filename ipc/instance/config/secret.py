"""Secrets: as written in shmbroker.toml, and their values.

    password = "..."                       plain: only if nobody else may read the file
    password = { env = "NAME" }            from the environment
    password = { file = "/path" }          what that file holds, if others may not read it
    password = { masked = "..." }          made by shmbroker mask (masking.py)

It is looked up when it is needed, not when the configuration is read: who only asks for the status
of an instance need not know it.  It shows itself nowhere; `revealed` is the only way to it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.instance.config import masking

KINDS: Final = ("env", "file", "masked")
PLAIN: Final = "plain"
READ_BY_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP
"""The group of a file may be the one that the broker runs in: it may read."""


class SecretRefused(InvalidArgument):
    """A secret is not there, or is none; the message says where, and never what."""


@dataclass(frozen=True, slots=True)
class Secret:
    kind: str
    content: str = field(repr=False)

    def __str__(self) -> str:
        return "***" if self.kind == PLAIN else f"{self.kind} ***"

    def revealed(self, key: str, folder: Path) -> str:
        """What it means to the instance in this folder; SecretRefused names this key."""
        try:
            return LOOKED_UP[self.kind](self.content, folder)
        except ValueError as error:
            raise SecretRefused(f"{key}: {error}") from None


def secret_of(given: object) -> Secret:
    """ValueError says what was expected."""
    if isinstance(given, str):
        return Secret(PLAIN, given)
    if isinstance(given, Mapping) and len(given) == 1:
        [(kind, content)] = given.items()
        if kind in KINDS and isinstance(content, str) and content:
            return Secret(kind, content)
    raise ValueError('text, { env = "NAME" }, { file = "/path" } or { masked = "..." }')


def check_kept(path: Path) -> None:
    """SecretRefused if others may read it."""
    try:
        status = path.stat()
    except OSError as error:
        raise SecretRefused(f"{path}: {error.strerror}") from None
    if status.st_mode & READ_BY_OTHERS:
        raise SecretRefused(f"{path} may be read or written by others: chmod 600 {path}")


def _plain(content: str, _folder: Path) -> str:
    return content


def _of_environment(name: str, _folder: Path) -> str:
    if name not in os.environ:
        raise ValueError(f"the environment has no {name}: set it for whoever runs the broker")
    return os.environ[name]


def _of_file(name: str, folder: Path) -> str:
    path = folder / name
    check_kept(path)
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ValueError(f"{path}: {why}") from None


def _masked(content: str, folder: Path) -> str:
    key = folder / masking.FILE
    check_kept(key)
    return masking.unmasked(content, masking.key_of(key))


LOOKED_UP: Final = {"plain": _plain, "env": _of_environment, "file": _of_file, "masked": _masked}
assert set(LOOKED_UP) == {PLAIN, *KINDS}
