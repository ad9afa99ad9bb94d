"""Credentials: a user, the keys that its passwords give, and the roles of its links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role


@dataclass(frozen=True, slots=True)
class Credential:
    name: str
    user: str
    roles: tuple[Role, ...]
    keys: tuple[Stretched, ...] = field(repr=False)
    """Of the password, and then of `accept-also`: tried in this order, and all accepted."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Of a broker: it shows the public key."""

    public: bytes
    secret: bytes = field(repr=False)

    @property
    def listening(self) -> bytes:
        """The secret CURVE key of an acceptor."""
        return self.secret


class Credentials:
    """Those of a broker, and what its files of keys hold."""

    def __init__(
        self,
        credentials: Iterable[Credential],
        pair: KeyPair | None = None,
        known_keys: Mapping[bytes, frozenset[Role]] | None = None,
    ) -> None:
        self._all = tuple(credentials)
        self.pair = pair
        self.known_keys = known_keys
        """None: any key may come, and proves what it may by its password."""

    def named(self, name: str) -> Credential | None:
        """That of [credentials.NAME]."""
        return next((each for each in self._all if each.name == name), None)

    def find(self, user: str, role: Role) -> Credential | None:
        """The one by which this user may have links of this role."""
        return next((each for each in self._all if each.user == user and role in each.roles), None)
