"""Who is logged in: sessions, in the memory of the console alone.

The cookie has a random token, of which only the digest is kept here.  A session also has a token
against requests that other sites make (CSRF), which the pages send with whatever changes something.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from shmbroker.cli.console.refusal import Refused

IDLE_SECONDS: Final = 3600.0
AGE_SECONDS: Final = 12 * 3600.0
SESSIONS_MAX: Final = 500
TOKEN_BYTES: Final = 32


@dataclass(slots=True)
class Session:
    user: str
    role: str
    """admin or viewer."""
    csrf: str
    began: float
    used: float

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"

    def has_sent(self, token: str) -> bool:
        return hmac.compare_digest(self.csrf.encode(), token.encode(errors="replace"))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


class Sessions:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._all: dict[bytes, Session] = {}
        self._endings: Counter[str] = Counter()

    def endings(self, user: str) -> int:
        """How often all sessions of a user were ended: to be read before a password is checked."""
        with self._lock:
            return self._endings[user]

    def begin(self, user: str, role: str, endings: int | None = None) -> tuple[str, Session]:
        """Its token, for the cookie.  Of too many the one goes that was not used for longest.

        Refused: the user's sessions were ended since there had been so many `endings`.
        """
        token, now = secrets.token_urlsafe(TOKEN_BYTES), self._clock()
        made = Session(user, role, secrets.token_urlsafe(TOKEN_BYTES), now, now)
        with self._lock:
            if endings is not None and endings != self._endings[user]:
                raise Refused(401, "credentials", "the password was changed just now")
            self._drop_old(now)
            if len(self._all) >= SESSIONS_MAX:
                del self._all[min(self._all, key=lambda each: self._all[each].used)]
            self._all[_digest(token)] = made
        return token, made

    def of(self, token: str, *, looks: bool = False) -> Session | None:
        """None: there is none, or it is over.  `looks`: it is not used by that."""
        with self._lock:
            now = self._clock()
            found = self._all.get(_digest(token))
            if found is None or self._is_old(found, now):
                return None
            if not looks:
                found.used = now
            return found

    def end(self, token: str) -> None:
        with self._lock:
            self._all.pop(_digest(token), None)

    def end_of(self, users: Collection[str]) -> None:
        with self._lock:
            self._endings.update(users)
            for key in [key for key, each in self._all.items() if each.user in users]:
                del self._all[key]

    def _is_old(self, of: Session, now: float) -> bool:
        return now - of.used > IDLE_SECONDS or now - of.began > AGE_SECONDS

    def _drop_old(self, now: float) -> None:
        for key in [key for key, each in self._all.items() if self._is_old(each, now)]:
            del self._all[key]
