"""What a member of a cluster, its links and its network are told of the configuration."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.netbridge.cluster.machine import Terms
from shmbroker.netbridge.cluster.option import Cluster
from shmbroker.netbridge.config.config import Acceptor, Network
from shmbroker.netbridge.plan.text import heard
from shmbroker.netbridge.wire.words import Role


def listening(network: Network) -> tuple[Acceptor, ...]:
    """Where other members come to."""
    return tuple(each for each in network.acceptors.values() if Role.CLUSTER in each.roles)


def without_cluster(network: Network) -> Network:
    """What all others come to, and how they reach it."""
    cluster = network.cluster
    between = () if cluster is None else (cluster.connector, *cluster.statics)
    return replace(network.without(listening(network)), cluster=None, between=between)


def terms(found: Cluster, name: str, group: tuple[str, ...], programs: str) -> Terms:
    return Terms(
        name,
        str(found.connector),
        group or (name,),
        tuple(str(each) for each in found.statics),
        learns=not found.allow_direct_connections_only,
        interval=found.notification_interval,
        attempts=found.notification_attempts,
        hops=found.hops,
        programs=programs,
    )


def plan(found: Cluster, uri: str) -> str:
    """Of the link to a member; there is no line for each attempt."""
    return (
        f"failover:({heard(uri) or uri})?initial-reconnect-delay={_ms(found.retry_interval)}"
        f"&max-reconnect-delay={_ms(found.max_retry_interval)}"
        f"&reconnect-delay-exponent={found.retry_interval_multiplier:g}"
        f"&max-reconnect-attempts={found.reconnect_attempts}"
        f"&startup-max-reconnect-attempts={found.initial_connect_attempts}"
        "&warn-after-reconnect-attempts=0"
    )


def _ms(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"
