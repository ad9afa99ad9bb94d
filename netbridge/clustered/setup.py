"""What a member of a cluster is made of: its configuration, with keys and secrets looked up."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.store import history_of
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.cluster.grouping import Grouping
from shmbroker.netbridge.cluster.option import Cluster
from shmbroker.netbridge.cluster.said import Left
from shmbroker.netbridge.clustered import options
from shmbroker.netbridge.config.colocated import Colocated, known_by
from shmbroker.netbridge.config.config import Network
from shmbroker.netbridge.discovery.option import Discovery
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.link.option import overridden, times_of
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credential, Credentials, KeyPair
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import OF_PROGRAMS, Standing

LIVES: Final = "cluster-lives"
"""In the store: the most lives ever seen, where only `cluster forget` lowers it, and those that it
has counted off."""
LEFT: Final = "cluster-left"
"""In the store: nodes that were scaled down, until which epoch, and who has what they have had."""
WAYS: Final = "cluster-ways"
"""In the store: by which neighbours messages for others go."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Of the configuration."""

    config: Config
    cluster: Cluster
    listens: Sequence[tuple[str, Stretched | KeyPair]]
    credential: Credential
    credentials: Credentials
    ours: Identity
    """Its name is that by which voters know this broker."""
    group: tuple[str, ...]
    """The members of its node, if they are known."""
    times: LinkTimes
    pair: KeyPair | None
    quorum: Quorum
    vhost: str
    """Whose queues the others are told of."""
    ways: Path
    """The file WAYS."""
    left: Path
    """The file LEFT."""
    group_name: str = ""
    """Of brokers that take each other's place when one leaves."""
    programs: str = ""
    """Where programs reach this broker, as others are told; empty if they do not."""
    discovery: Discovery | None = None
    """What finds its members; None: it has static connectors."""
    grouping: Grouping | None = None
    """None: groups are of their node alone."""
    colocated: Colocated | None = None
    """None: nobody's backup runs here, and none of ours elsewhere."""


def setup(
    config: Config, given: Given, programs: str, former: Credential | None = None
) -> Setup | None:
    """`former`: its credential before the file had another one.  None: it is in no cluster."""
    network = given.wanted
    if network.cluster is None:
        return None
    credential = given.credentials.named(network.cluster.credentials) or former
    assert credential is not None, "the configuration was checked"
    history = history_of(config.store)
    return Setup(
        config,
        network.cluster,
        [(f"tcp://{each.uri.peer}", given.key_of(each)) for each in options.listening(network)],
        credential,
        given.credentials,
        Identity(bytes(16), os.urandom(16), config.name, Standing.NONE, 0, history),
        tuple(name for name, _ in config.members),
        times_of(overridden(network.link_defaults, network.cluster.of_links)),
        given.pair,
        _quorum(config, given),
        config.vhost,
        config.store / WAYS,
        config.store / LEFT,
        _group_name(network),
        _if_admitted(network, programs),
        network.discoveries.get(network.cluster.discovery_group or ""),
        network.grouping,
        network.colocated,
    )


def reloaded(running: Setup, given: Given, programs: str) -> Setup:
    """How its members know and find each other, and programs them; all else needs a restart."""
    network, known, cluster = given.wanted, given.credentials, running.cluster
    keys = {each.uri.peer: given.key_of(each) for each in options.listening(network)}
    return replace(
        running,
        listens=[
            (address, keys.get(address.removeprefix("tcp://"), key))
            for address, key in running.listens
        ],
        credential=known.named(cluster.credentials) or running.credential,
        credentials=known,
        programs=_if_admitted(network, programs),
        discovery=network.discoveries.get(cluster.discovery_group or "", running.discovery),
        colocated=known_by(running.colocated, network.colocated),
    )


def _if_admitted(network: Network, programs: str) -> str:
    admits = any(OF_PROGRAMS & set(each.roles) for each in network.acceptors.values())
    return programs if admits else ""


def _group_name(network: Network) -> str:
    """[ha.scale-down] says it, or else [ha.replication]."""
    if network.scale_down is not None and network.scale_down.group:
        return network.scale_down.group
    return (network.replication.group_name or "") if network.replication is not None else ""


def _quorum(config: Config, given: Given) -> Quorum:
    found = given.wanted.replication
    if found is None:
        return Quorum()
    if found.quorum_recalculate == "restart":
        return Quorum(found.quorum_size)
    return kept_lives(config, Quorum(found.quorum_size, recalculates=False))


def kept_lives(config: Config, quorum: Quorum) -> Quorum:
    kept = read_whole(config.store / LIVES)
    with suppress(ValueError, TypeError):  # who has written to it?
        lives, gone = int(kept.get("lives", 1)), frozenset(map(str, kept.get("forgotten", ())))
        return replace(quorum, seen_max=max(1, lives), gone=gone)
    return quorum


def show(config: Config, file: str, shown: Mapping[str, Any]) -> None:
    """To people, in run/."""
    with suppress(OSError):  # what it says is no reason to end
        write_whole(config.folder / RUN / file, dict(shown))


def read_left(place: Path) -> list[Left]:
    found = []
    for node, said in read_whole(place).items():
        with suppress(ValueError, TypeError):  # who has written to it?
            epoch, to = said
            found.append(Left(bytes.fromhex(node), int(epoch), bytes.fromhex(to)))
    return found


def keep_left(place: Path, left: tuple[Left, ...]) -> None:
    shown = {each.node.hex(): [each.epoch, each.to.hex()] for each in left}
    write_whole(place, shown, synced=True)


def keep_lives(config: Config, quorum: Quorum) -> None:
    """The folder may not be there yet: then the next change is kept."""
    place: Path = config.store
    if place.is_dir():
        kept = {"lives": quorum.seen_max, "forgotten": sorted(quorum.gone)}
        write_whole(place / LIVES, kept, synced=True)
