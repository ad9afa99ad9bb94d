"""Which flag of `shmbroker create` a key of shmbroker.toml comes from, for its errors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from shmbroker.netbridge.config.template import Joined

OF_REPLICATION: Final = ("witness", "on_partition", "quorum_size", "group_name")
OF_CLUSTER: Final = ("static_cluster", "max_hops", "message_load_balancing")

FLAGS: Final = {
    "acceptors.members.uri": "--port (+2, for members) with --host",
    "acceptors.nodes.uri": "--port (+3, for nodes) with --host",
    "acceptors.programs.uri": "--port with --host",
    "cluster.main.max-hops": "--max-hops",
    "cluster.main.message-load-balancing": "--message-load-balancing",
    "connectors.static.uri": "--static-cluster",
    "console.listen": "--console-port",
    "credentials.cluster.user": "--cluster-user",
    "ha.replication.group-name": "--group-name",
    "ha.replication.on-partition": "--on-partition",
    "ha.replication.quorum-size": "--quorum-size",
    "ha.replication.witnesses": "--witness",
    "instance.name": "--name",
    "instance.queues": "--queues",
    "instance.vhost": "--vhost",
    "store.path": "--store",
}
LINES: Final = (
    ('on-partition = "stop-confirming"', "--on-partition stop-confirming  "),
    ('on-partition = "continue-alone"', "--on-partition continue-alone  "),
    ('witnesses = ["tcp://HOST:61617"]', "--witness tcp://HOST:61617"),
)
"""Of the message about a pair that can ask nobody."""


def check(network: dict[str, Any], joined: Joined | None, role: str | None) -> None:
    """UsageError if a flag is for what this broker is not."""
    is_replicated = network["is_replicated"] or (joined is not None and role == "backup")
    is_clustered = network["is_clustered"] or (joined is not None and joined.is_clustered)
    for names, is_meant, kind in (
        (OF_REPLICATION, is_replicated, "--replicated"),
        (OF_CLUSTER, is_clustered, "--clustered"),
    ):
        for name in names:
            if network[name] is not None and not is_meant:
                raise click.UsageError(f"--{name.replace('_', '-')} is for {kind}: say that too")


@contextmanager
def named(file: Path, settings: Collection[str]) -> Iterator[None]:
    """A ConfigError names flags instead of keys, but for those that --set has given; the file that
    it names is not there yet."""
    from shmbroker.ipc.instance.config.config import ConfigError

    try:
        yield
    except ConfigError as error:
        text = str(error).removeprefix(f"{file}: ")
        key = next((each for each in FLAGS if text.startswith(f"{each} ")), None)
        if key is None or key in settings:
            raise
        text = f"{FLAGS[key]}{text.removeprefix(key)}"
        for line, flag in LINES:
            text = text.replace(line, flag)
        raise ConfigError(text) from error
