"""Links that are good once: `shmbroker console open DIR` makes one, and the console takes it.

In run/console-links/ a file by the digest of the token, which only the link itself has.  Whoever
removes the file has used the link, so that nobody can use it twice.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from pathlib import Path
from typing import Final

from shmbroker.ipc.base import trust
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import read_whole, write_whole

FOLDER: Final = "console-links"
GOOD_SECONDS: Final = 300.0
TOKEN_BYTES: Final = 32
ROLES: Final = ("admin", "viewer")


def _place(folder: Path, token: str) -> Path:
    return folder / RUN / FOLDER / hashlib.sha256(token.encode()).hexdigest()


def made(folder: Path, role: str, user: str) -> str:
    """The token."""
    trust.make_folder(folder / RUN / FOLDER)
    for each in (folder / RUN / FOLDER).iterdir():
        if _is_over(read_whole(each)):
            each.unlink(missing_ok=True)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    until = time.time() + GOOD_SECONDS
    write_whole(_place(folder, token), {"until": until, "role": role, "user": user})
    return token


def taken(folder: Path, token: str) -> tuple[str, str] | None:
    """User and role of whom it lets in; None: it is none, or was used, or is too old."""
    if not re.fullmatch(r"[\w-]{20,100}", token, re.A):
        return None
    place = _place(folder, token)
    told = read_whole(place, trust.files())
    if not told:
        return None
    try:
        place.unlink()
    except FileNotFoundError:  # somebody was faster
        return None
    user, role = told.get("user"), told.get("role")
    if _is_over(told) or role not in ROLES or not isinstance(user, str):
        return None
    return user, str(role)


def _is_over(told: dict[str, object]) -> bool:
    until = told.get("until")
    return not isinstance(until, float) or until < time.time()
