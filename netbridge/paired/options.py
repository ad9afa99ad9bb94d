"""What the machine of a pair and its link are told of the configuration."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.ipc.instance.config.config import Config, ConfigError, place_of
from shmbroker.netbridge.config.config import Acceptor, Network, of_role
from shmbroker.netbridge.pair import option
from shmbroker.netbridge.pair.machine import PairOptions
from shmbroker.netbridge.pair.option import PairConfig, Refused
from shmbroker.netbridge.plan.plans import SOON
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.wire.words import Role

KEY = "key"


def checked(config: Config, network: Network) -> PairConfig:
    """ConfigError: it cannot be one of a pair."""
    assert network.pair is not None, "ha.policy is pair"
    place = place_of(config.folder)
    try:
        found = option.pair(network.pair, frozenset(of_role(Role.PEERING, network.logins)))
    except Refused as error:
        raise ConfigError(f"{place}: {error}") from None
    if not listening(network):
        raise ConfigError(
            f'{place}: no [acceptors.NAME] has "peering" among its roles: the other one of the '
            "pair connects there (or start it with --port)"
        )
    return found


def listening(network: Network) -> tuple[Acceptor, ...]:
    """Where the other one comes to."""
    return tuple(each for each in network.acceptors.values() if Role.PEERING in each.roles)


def of_machine(found: PairConfig) -> PairOptions:
    return PairOptions(
        is_primary=found.is_primary,
        vhost=found.vhost,
        peer=str(replace(found.other, vhost=found.vhost, values=())),
        failover_timeout=found.failover_timeout,
        is_accepted_pending=found.accept_when_pending == "primary",
        has_primary_win=found.on_conflict == "primary-wins",
    )


def other(found: PairConfig, own_key: bytes | None) -> str:
    """The plan of the link to the other one.

    `own_key`: of our acceptor, if it comes from a password: the other one has the same, unless its
    address says otherwise.
    """
    values = dict(found.other.values)
    if own_key is not None:
        values.setdefault(KEY, own_key.hex())
    there = Single(found.other.host, found.other.port, found.vhost, tuple(values.items()))
    return f"failover:({there})?{SOON}"
