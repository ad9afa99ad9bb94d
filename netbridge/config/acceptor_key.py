"""The public key of each acceptor: who logs in as another user pins it by `key=` in its address."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from shmbroker.netbridge.config.config import Network
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.security import curve, key_file
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.wire.words import Role


@dataclass(frozen=True, slots=True)
class AcceptorKey:
    name: str
    uri: str
    credentials: str | None
    """Whose password gives the key; None: it is that of security.key-file."""
    public: str
    roles: tuple[Role, ...]


def acceptor_keys(network: Network, roles: Collection[Role] | None = None) -> list[AcceptorKey]:
    """Of the acceptors that admit one of these roles; None, of all.  It takes some 100 ms."""
    wanted = [
        each for each in network.acceptors.values() if roles is None or set(roles) & set(each.roles)
    ]
    logins, _ = credentials(network, {each.credentials for each in wanted if each.credentials})
    return [
        AcceptorKey(
            each.name,
            str(each.uri),
            each.credentials,
            _public(network, logins.named(each.credentials) if each.credentials else None).hex(),
            each.roles,
        )
        for each in wanted
    ]


def _public(network: Network, whose: Credential | None) -> bytes:
    if whose is not None:
        return curve.public_of(whose.keys[0].listening)
    assert network.key_file is not None  # config.load refuses an acceptor without a key
    return key_file.read(network.key_file).public
