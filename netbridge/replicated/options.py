"""What the machine of a member, its links and its data are told of the configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from shmbroker.ipc.instance.config.config import FILE, Config, ConfigError
from shmbroker.netbridge.config.colocated import group_of
from shmbroker.netbridge.config.config import Acceptor, Network
from shmbroker.netbridge.election.candidate import Electorate, Patience
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.member.option import Replication
from shmbroker.netbridge.member.options import CONTINUE_ALONE, STOP_CONFIRMING, MemberOptions
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.wire.words import ReplicaAck, Role

CONNECT_SECONDS: Final = 1.0
"""For the pause before an attempt to connect, and the handshake behind it."""


def refused(config: Config, why: str) -> ConfigError:
    return ConfigError(f"{config.folder / FILE}: {why}")


def checked(config: Config, network: Network) -> Replication:
    """ConfigError: it cannot be a member of a replicated node."""
    found = network.replication
    assert found is not None, "ha.policy is replication"
    names = [name for name, _ in config.members]
    if config.name not in names:
        there = ", ".join(names) if names else "there is none"
        raise refused(config, f"ha.members names all members, and not {config.name!r}: {there}")
    if len(names) < 2 and not asks_for_backups(network):
        raise refused(config, "ha.members names one member, and a replicated node has two at least")
    if config.lock != "file":
        raise refused(config, 'store.lock = "sql" is for a store that is shared')
    if not listening(network):
        raise refused(config, 'there is no [acceptors.NAME] with roles = ["replica"]')
    for each in network.acceptors.values():
        if Role.REPLICA in each.roles and len(each.roles) > 1:
            others = [role.value for role in each.roles if role is not Role.REPLICA]
            raise refused(
                config,
                f"[acceptors.{each.name}] has the role replica, and {', '.join(others)} as well: "
                "members have an acceptor of their own",
            )
    drains(config, network, found)
    return found


def asks_for_backups(network: Network) -> bool:
    """Its members are itself, and backups that run at other lives of its cluster."""
    return network.colocated is not None and network.colocated.requests


def group_name(config: Config, network: Network) -> str:
    assert network.replication is not None, "ha.policy is replication"
    group = network.replication.group_name or ""
    return group_of(group, config.name) if asks_for_backups(network) else group


def listening(network: Network) -> tuple[Acceptor, ...]:
    """Where other members come to."""
    return tuple(
        each
        for each in network.acceptors.values()
        if Role.REPLICA in each.roles and not each.queue_replicas
    )


def without_members(network: Network) -> Network:
    """What programs and links of other nodes come to."""
    return network.without(listening(network))


def credential(config: Config, network: Network, known: Credentials) -> Credential:
    """By which this member knows the others."""
    names = [each.name for each in network.logins.values() if Role.REPLICA in each.roles]
    found = known.named(names[0]) if len(names) == 1 else None
    if found is None:
        there = f"there are {', '.join(names)}" if names else "there is none"
        raise refused(config, f'one of [credentials.NAME] has role = "replica": {there}')
    return found


def terms(found: Replication) -> ReplicationTerms:
    return ReplicationTerms(
        replica_ack=ReplicaAck(found.replica_ack),
        max_replicas=found.max_replicas,
        resync_bytes=found.resync_bytes,
        saved_journals=found.max_saved_replicated_journals_size,
        **_reloadable_terms(found),
    )


def reloaded(
    running: MemberOptions, terms: ReplicationTerms, found: Replication
) -> tuple[MemberOptions, ReplicationTerms]:
    """Without what needs a restart (`RELOADED` in member/option.py)."""
    return replace(
        running, patience=_patience(found, running.patience.rank), **_reloadable_options(found)
    ), replace(terms, **_reloadable_terms(found))


def _reloadable_options(found: Replication) -> dict[str, Any]:
    return {
        "retry_wait": found.retry_replication_wait,
        "sync_timeout": found.initial_replication_sync_timeout,
        "replica_timeout": found.replica_timeout,
        "min_insync": found.min_insync,
        "is_checked": bool(found.network_check),
        "handover_timeout": found.handover_timeout,
        "backup_timeout": found.backup_timeout,
    }


def _reloadable_terms(found: Replication) -> dict[str, Any]:
    return {
        "replica_timeout": found.replica_timeout,
        "min_insync": found.min_insync,
        "sync_timeout": found.initial_replication_sync_timeout,
        "retry_wait": found.retry_replication_wait,
    }


def _patience(found: Replication, rank: int) -> Patience:
    return Patience(found.vote_retries, found.vote_retry_wait, found.quorum_vote_wait, rank)


def drains(config: Config, network: Network, found: Replication) -> bool:
    """ConfigError: it takes over, but does not give away what it has, as these options are."""
    wanted = network.scale_down
    if wanted is None or not wanted.is_enabled:
        return False
    if found.on_partition == CONTINUE_ALONE:
        raise refused(
            config,
            f'[ha.scale-down] does not go with ha.replication.on-partition = "{CONTINUE_ALONE}": '
            "the live that is back would serve once more what went to another node",
        )
    if found.activation != "auto":
        raise refused(config, '[ha.scale-down] needs ha.replication.activation = "auto"')
    if found.min_insync > 1:
        raise refused(
            config,
            f"[ha.scale-down] does not go with ha.replication.min-insync = {found.min_insync}: a "
            "backup that gives all away is alone meanwhile",
        )
    return True


def member(config: Config, network: Network, electorate: Electorate | None) -> MemberOptions:
    found = network.replication
    assert found is not None, "ha.policy is replication"
    names = tuple(name for name, _ in config.members)
    is_first = names[0] == config.name
    return MemberOptions(
        config.name,
        is_preferred=config.role == "live" or (config.role == "auto" and is_first),
        members=names,
        electorate=electorate,
        votes=found.vote_on_replication_failure,
        on_lost_vote=found.on_lost_vote,
        on_partition=found.on_partition or STOP_CONFIRMING,
        lease=found.lease,
        patience=_patience(found, names.index(config.name)),
        check_for_live=found.check_for_live_server,
        check_wait=found.check_for_live_wait,
        connect_wait=times_of(network.link_defaults).connect_timeout + CONNECT_SECONDS,
        allow_failback=config.allow_failback,
        restart_backup=config.restart_backup,
        has_command=bool(config.on_promote),
        activates=found.activation == "auto",
        ack_outlives_boot=found.replica_ack == "disk",
        max_replicas=found.max_replicas,
        drains=drains(config, network, found),
        **_reloadable_options(found),
    )
