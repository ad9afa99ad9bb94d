"""What a running broker takes of a network that was read again: the rest needs a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from shmbroker.ipc.instance.config.config import ConfigError, place_of
from shmbroker.netbridge.config.colocated import known_by
from shmbroker.netbridge.config.config import Network, of_role, with_keys
from shmbroker.netbridge.config.of_ha import QUEUE_REPLICATION
from shmbroker.netbridge.member import option as member
from shmbroker.netbridge.pair import option as pair
from shmbroker.netbridge.wire.words import Role

OF_POLICY: Final = ("ha.replication.", "ha.pair.")
"""Beginnings of keys that are nothing under another policy."""


def as_running(running: Network, found: Network) -> Network:
    """ConfigError: what was found does not go with what needs a restart."""
    place = place_of(found.folder)
    try:
        replication = member.reloaded(running.replication, found.replication)
    except member.Refused as error:
        raise ConfigError(f"{place}: {error}") from None
    wanted = replace(
        found.listening_as(running),
        replication=replication,
        zookeeper=running.zookeeper,
        pair=_pair(running.pair, found.pair),
        queue_replication=running.queue_replication,
        cluster=running.cluster,
        scale_down=running.scale_down,
        grouping=running.grouping,
        colocated=known_by(running.colocated, found.colocated),
    )
    replicas = of_role(Role.REPLICA, wanted.logins)
    if wanted.queue_replication and len(replicas) != 1:
        raise ConfigError(
            f"{place}: until a restart {QUEUE_REPLICATION} is true, which needs one "
            f'[credentials.NAME] of role "replica", and there are {len(replicas)}'
        )
    try:
        return with_keys(wanted, place)
    except ConfigError as error:
        raise ConfigError(f"{error}; where this broker listens needs a restart") from None


def _pair(
    running: Mapping[str, Any] | None, found: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    if running is None or found is None:
        return running
    reloaded = {each.name for each in pair.PAIR if each.is_reloaded}
    kept = {name: each for name, each in running.items() if name not in reloaded}
    return kept | {name: each for name, each in found.items() if name in reloaded}
