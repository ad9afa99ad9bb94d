"""Logging in: by one of the credentials that [console] names, or by a link that is good once."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from shmbroker.cli.console import one_time
from shmbroker.cli.console.attempts import Attempts, source_of
from shmbroker.cli.console.refusal import Refused
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role

WAITING_MAX: Final = 4
"""Passwords that are stretched, one after the other, or wait for that: each takes 100 ms, 32 MiB.
Of one source there is one at a time, so that it keeps nobody else waiting."""
LENGTH_MAX: Final = 1024
KNOWN_MAX: Final = 100


class Login:
    """From any thread."""

    def __init__(
        self, folder: Path, names: tuple[str, ...], known: Credentials, clock: Callable[[], float]
    ) -> None:
        self._credentials = _those_of(known, names)
        self._folder, self._clock = folder, clock
        self._attempts = Attempts()
        self._lock = threading.Lock()
        self._stretching = threading.Lock()
        self._waiting: set[str] = set()
        """Their sources."""
        self._secret = secrets.token_bytes(32)
        self._seen: dict[bytes, str] = {}
        """Roles by digests of what was right: who comes each second need not be stretched."""

    def knows(self, known: Credentials, names: Iterable[str]) -> frozenset[str]:
        """Those of these names, from now on; the users whose credentials are gone or others than
        before."""
        former, self._credentials = self._credentials, _those_of(known, names)
        self._seen = {}
        return frozenset(each.user for each in former if each not in self._credentials)

    def check(self, address: str) -> None:
        """Refused: whoever asks from there has to wait; what he sends is not read."""
        self._check_pause(source_of(address), None)

    def by_password(self, address: str, user: str, password: str) -> str:
        """The role; Refused."""
        if len(user) > LENGTH_MAX or len(password) > LENGTH_MAX:
            raise Refused(400, "too-long", "no user and no password is as long as that")
        source = source_of(address)
        self._check_pause(source, user)
        with self._lock:
            if source in self._waiting or len(self._waiting) >= WAITING_MAX:
                raise _busy()
            self._waiting.add(source)
        try:
            with self._stretching:
                self._check_pause(source, user)
                role = self._role(user, password)
                self._ended(source, user, role)
        finally:
            with self._lock:
                self._waiting.discard(source)
        if role is None:
            raise Refused(401, "credentials", "there is no such user with this password")
        return role

    def by_password_again(self, address: str, user: str, password: str) -> str:
        """The same, for who sends both with each request."""
        key = hmac.digest(self._secret, f"{len(user)}:{user}:{password}".encode(), hashlib.sha256)
        seen = self._seen  # not one that begins, with other passwords, before we have the answer
        role = seen.get(key)
        if role is None:
            role = self.by_password(address, user, password)
            if len(seen) < KNOWN_MAX:
                seen[key] = role
        return role

    def by_link(self, address: str, token: str) -> tuple[str, str]:
        """User and role; Refused."""
        source = source_of(address)
        self._check_pause(source, None)
        found = one_time.taken(self._folder, token)
        self._ended(source, None, None if found is None else found[1])
        if found is None:
            raise Refused(
                401, "link", "this link was used, or is too old: shmbroker console open DIR"
            )
        return found

    def _ended(self, source: str, user: str | None, role: str | None) -> None:
        with self._lock:
            if role is None:
                self._attempts.failed(source, user, self._clock())
            else:
                self._attempts.succeeded(source, user)

    def _check_pause(self, source: str, user: str | None) -> None:
        with self._lock:
            pause = self._attempts.pause(source, user, self._clock())
        if pause > 0:
            seconds = int(pause) + 1
            refused = Refused(
                429, "too-many", f"too many attempts failed: try again in {seconds} s"
            )
            refused.headers["Retry-After"] = str(seconds)
            raise refused

    def _role(self, user: str, password: str) -> str | None:
        """As much work for a user who is not there."""
        tried = Stretched(user, password)
        role = None
        for each in self._credentials:
            is_right = any(hmac.compare_digest(tried.proof, key.proof) for key in each.keys)
            if each.user == user and is_right:
                role = _role_of(each)
        return role


def _those_of(known: Credentials, names: Iterable[str]) -> tuple[Credential, ...]:
    found = (known.named(name) for name in names)
    return tuple(each for each in found if each is not None)


def _role_of(credential: Credential) -> str:
    return "admin" if Role.ADMIN in credential.roles else "viewer"


def _busy() -> Refused:
    refused = Refused(429, "too-many", "others log in at the moment: try again")
    refused.headers["Retry-After"] = "1"
    return refused
