"""What a broker is in its cluster beside a member: a grouping handler, and one that may leave."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shmbroker.ipc.instance.config.config import ConfigError, Given
from shmbroker.netbridge.cluster import grouping as groupings
from shmbroker.netbridge.cluster import option as cluster_option
from shmbroker.netbridge.cluster.grouping import Grouping
from shmbroker.netbridge.cluster.option import Cluster
from shmbroker.netbridge.cluster.scale_down import ScaleDown, scale_down
from shmbroker.netbridge.config.colocated import Colocated, colocated
from shmbroker.netbridge.plan.uri import Single


def grouping_of(
    named: Mapping[str, dict[str, Any]], in_cluster: Cluster | None, place: Path
) -> Grouping | None:
    if len(named) > 1:
        raise ConfigError(
            f"{place}: a broker has one grouping handler, and there are {' and '.join(named)}"
        )
    for name, values in named.items():
        try:
            return groupings.grouping(name, values, in_cluster)
        except cluster_option.Refused as error:
            raise ConfigError(f"{place}: {error}") from None
    return None


def scale_down_of(
    given: Given,
    tables: Mapping[str, dict[str, Any]],
    in_cluster: Cluster | None,
    connectors: Mapping[str, Single],
    place: Path,
) -> ScaleDown | None:
    values = tables.get("ha.scale-down")
    # as they stand there: what is wrong with them is said elsewhere
    policy, role = str(given.get("ha.policy", "shared-store")), str(given.get("ha.role", "live"))
    try:
        return scale_down(values, policy, role, in_cluster, connectors)
    except cluster_option.Refused as error:
        raise ConfigError(f"{place}: {error}") from None


def colocated_of(
    given: Given,
    tables: Mapping[str, dict[str, Any]],
    in_cluster: Cluster | None,
    connectors: Mapping[str, Single],
    place: Path,
) -> Colocated | None:
    statics: set[str] = set()
    if in_cluster is not None:
        wanted = tables[f"{cluster_option.ROOT}.{in_cluster.name}"]["static-connectors"] or ()
        statics = {each for each in wanted if connectors[each] != in_cluster.connector}
    try:
        return colocated(
            tables.get("ha.colocated", {}), given, in_cluster, connectors, sorted(statics)
        )
    except cluster_option.Refused as error:
        raise ConfigError(f"{place}: {error}") from None
