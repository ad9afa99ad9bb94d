"""What a broker has of the network by its configuration, with its secrets looked up."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.agent.option import Agent
from shmbroker.netbridge.config.config import Acceptor, Network, of_role
from shmbroker.netbridge.config.of_bridges import Bridge
from shmbroker.netbridge.network.option import NetworkLink
from shmbroker.netbridge.security.credential import Credential, Credentials, KeyPair
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role

Shipping = Bridge | NetworkLink | Agent
"""What it has a link for."""


@dataclass(frozen=True, slots=True)
class Given:
    wanted: Network
    credentials: Credentials

    @property
    def shipping(self) -> dict[str, Shipping]:
        """By name, of which each is there once."""
        return {**self.wanted.bridges, **self.wanted.links, **self.wanted.agents}

    @property
    def agents(self) -> tuple[Agent, ...]:
        return tuple(self.wanted.agents.values())

    def credential(self, bridge: Shipping) -> Credential:
        found = self.credentials.named(bridge.credentials)
        assert found is not None, "the configuration was checked"
        return found

    def of_replicas(self) -> Credential:
        """With which queues follow those of other brokers."""
        [name] = of_role(Role.REPLICA, self.wanted.logins)
        found = self.credentials.named(name)
        assert found is not None, "the configuration was checked"
        return found

    @property
    def pair(self) -> KeyPair | None:
        return self.credentials.pair

    def key_of(self, acceptor: Acceptor) -> Stretched | KeyPair:
        if acceptor.credentials is None:
            assert self.pair is not None, "the configuration was checked"
            return self.pair
        found = self.credentials.named(acceptor.credentials)
        assert found is not None
        return found.keys[0]
