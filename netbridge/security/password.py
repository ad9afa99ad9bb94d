"""Passwords that are refused, and those that are warned of. No text here has a password in it."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.base.errors import InvalidArgument

SHIPPED: Final = frozenset({"CHANGE ME!!", "admin", "guest"})
"""What other products come with."""
SAMPLES: Final = frozenset({"cluster_user_password", "password", "secret", "changeme"})
"""What stands in manuals."""
SHORT: Final = 12


class PasswordRefused(InvalidArgument):
    """Nobody may be admitted by this password; the message says where it stands, never what."""


def check(key: str, password: str) -> None:
    """`key`: where it stands."""
    if not password:
        raise PasswordRefused(f"{key} is empty: anybody would know it")
    if password in SHIPPED:
        raise PasswordRefused(f"{key} is what another product is shipped with: choose another one")


def warning(key: str, password: str) -> str | None:
    if password in SAMPLES:
        return f"{key} is a sample of a manual: choose another one"
    if len(password) < SHORT:
        return f"{key} has less than {SHORT} characters, and may be guessed"
    return None
