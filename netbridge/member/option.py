"""The options of replication: [ha.replication]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import FLAG, TEXT, Kind, choice, count, duration, size
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.plan.uri import Single

HOUR: Final = 3600.0
LEASE_SECONDS: Final = 0.1, 60.0
HAND_OVER_SECONDS_MIN: Final = 2.0
"""More than its vote alone may take, so that it ends as it was begun."""


class Refused(ValueError):
    """Options that are missing or do not go together; the message says which."""


def _witnesses(given: object) -> tuple[Single, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ValueError('1, 3 or 5 uris, as in ["tcp://HOST:61617"]')
    if len(given) not in (0, 1, 3, 5):
        raise ValueError(f"1, 3 or 5 uris; {len(given)} may split evenly or are too many")
    return tuple(single(each) for each in given)


def _lease(given: object) -> float:
    found = float(duration().parse(given))
    if found and not LEASE_SECONDS[0] <= found <= LEASE_SECONDS[1]:
        raise ValueError("0s (off) or in 100ms…60s")
    return found


def _peers(given: object) -> tuple[Single, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise ValueError('hosts and ports, as in ["gateway:22"]')
    return tuple(single(each) for each in given)


RELOADED: Final = frozenset({
    "vote-retries", "vote-retry-wait", "quorum-vote-wait", "initial-replication-sync-timeout",
    "retry-replication-wait", "replica-timeout", "handover-timeout", "backup-timeout",
    "network-check", "min-insync",
})  # fmt: skip
"""Time-outs and lists of peers; who a member is needs a restart."""


def _row(name: str, kind: Kind, default: Default | None, help: str) -> Option:
    return Option("ha.replication", name, kind, default, help, is_reloaded=name in RELOADED)


# fmt: off
REPLICATION: Final = (
    _row("group-name", TEXT, None,
         "Only members with the same one replicate to each other."),
    _row("cluster-name", TEXT, None,
         "The [cluster.NAME] that is searched and that votes; the first one if left out."),
    _row("check-for-live-server", FLAG, False,
         "At a start, look for a live of this node first, join it, and ask for the role back."),
    _row("check-for-live-wait", duration(0.1, HOUR), "5s", "How long it looks."),
    _row("vote-on-replication-failure", FLAG, None,
         "The live asks before it goes on alone.  True where somebody can be asked."),
    _row("on-lost-vote", choice("shutdown", "demote"), "shutdown",
         "What a live does whose vote was lost: it ends, or stays up without serving."),
    _row("on-partition", choice("stop-confirming", "continue-alone"), None,
         "What members do that do not reach each other, where nobody can be asked."),
    _row("witnesses", Kind("uris", _witnesses, "1, 3 or 5"), [],
         "Who votes; if there are any, only they do."),
    _row("lease", Kind("time", _lease, "0s, 100ms…60s"), None,
         "How long voters hold still after a renewal; the silence of a link if left out, 0s: off."),
    _row("quorum-size", count(-1, 1000), -1,
         "Groups that are counted for a vote; -1: most lives ever seen."),
    _row("quorum-recalculate", choice("restart", "command"), "restart",
         "When the count falls: all remaining brokers were restarted, or `cluster forget`."),
    _row("vote-retries", count(0, 1_000_000), 12, "Further attempts of a vote that was not won."),
    _row("vote-retry-wait", duration(0.001, HOUR), "5s", "The pause between them."),
    _row("quorum-vote-wait", duration(0.001, HOUR), "30s",
         "Patience for missing answers; a vote ends as soon as its result is certain."),
    _row("network-check", Kind("peers", _peers), [],
         "Peers outside of the group; a member that reaches none of them is isolated."),
    _row("lock-manager", choice("votes", "zookeeper", "sql"), "votes",
         "Who grants epochs: voters, or an engine that runs already."),
    _row("activation", choice("auto", "command"), "auto",
         "Whether a member becomes live by itself, or by `shmbroker ha promote` only."),
    _row("initial-replication-sync-timeout", duration(0.001, HOUR), "30s",
         "The longest time that writes may be held at the end of a sync."),
    _row("retry-replication-wait", duration(0.001, HOUR), "2s",
         "The pause before a backup that was rejected tries again; it doubles while the live does "
         "not answer."),
    _row("resync-bytes", size(is_endless=True), "1GiB",
         "Of segments kept for a replica that is away; 0: none."),
    _row("max-saved-replicated-journals-size", count(0, is_endless=True), 2,
         "Old data that is kept when a member is synced anew; 0: none."),
    _row("max-replicas", count(1, 7), 1, "Replicas that are followed at once."),
    _row("min-insync", count(1, 8), 1,
         "Copies, the live's included, that a confirm needs; with fewer, publishes wait and fail."),
    _row("replica-timeout", duration(0.01, HOUR), "1s",
         "A replica without progress for so long is not in sync any more."),
    _row("replica-ack", choice("received", "disk"), "received",
         "A replica confirms what it has written, or what it has synced."),
    _row("handover-timeout", duration(HAND_OVER_SECONDS_MIN, HOUR), "60s",
         "How long a live that stops may take until it has handed over."),
    _row("backup-timeout", duration(0, HOUR), "0s",
         "A new live holds confirms until its replicas are in sync again, at most so long."),
)
# fmt: on

MISSING: Final = """ha.replication.on-partition is missing.  This pair has no witness and no quorum: when its
members do not reach each other, neither can know whether the other is dead.  Say what they do then:
  on-partition = "stop-confirming"   There is never more than one live.  A live that loses its replica, by crash or network, confirms
                                     nothing more until it is back, or `shmbroker ha continue`; a backup takes over only after a
                                     graceful stop, if the death is proven (same host), or by `shmbroker ha activate --force`.
  on-partition = "continue-alone"    There is always one that serves.  Each goes on alone; if it was the network and not a death, both
                                     serve, what they took in differs, and a person has to merge it.
Or give it a witness: witnesses = ["tcp://HOST:61617"]  (shmbroker witness run)"""  # noqa: E501 - as people see it


@dataclass(frozen=True, slots=True)
class Replication:
    """[ha.replication], checked.  Times in seconds."""

    group_name: str | None
    cluster_name: str | None
    check_for_live_server: bool
    check_for_live_wait: float
    vote_on_replication_failure: bool
    on_lost_vote: str
    on_partition: str | None
    """None: somebody can be asked, or a person decides."""
    witnesses: tuple[Single, ...]
    lease: float
    quorum_size: int
    quorum_recalculate: str
    vote_retries: int
    vote_retry_wait: float
    quorum_vote_wait: float
    network_check: tuple[Single, ...]
    lock_manager: str
    activation: str
    initial_replication_sync_timeout: float
    retry_replication_wait: float
    resync_bytes: int
    max_saved_replicated_journals_size: int
    max_replicas: int
    min_insync: int
    replica_timeout: float
    replica_ack: str
    handover_timeout: float
    backup_timeout: float
    can_ask: bool
    """A quorum, a witness or an engine is configured."""


def replication(
    given: Mapping[str, Any], silence: float, clusters: Collection[str] = ()
) -> Replication:
    """`given`: values by name, as far as they were given.  `silence`: when a link is lost.

    `clusters`: the names of [cluster.NAME].
    """
    values: dict[str, Any] = {
        each.name: None if each.default is None else each.value_of(each.default)
        for each in REPLICATION
    }
    values |= given
    can_ask = _can_ask(values, clusters)
    _check(values, clusters, can_ask=can_ask)
    if values["vote-on-replication-failure"] is None:
        values["vote-on-replication-failure"] = can_ask
    if values["lease"] is None:
        values["lease"] = min(max(silence, LEASE_SECONDS[0]), LEASE_SECONDS[1])
    named = {name.replace("-", "_"): value for name, value in values.items()}
    return Replication(**named, can_ask=can_ask)


def reloaded(running: Replication | None, found: Replication | None) -> Replication | None:
    """With what a running member takes of the new one; Refused."""
    if running is None or found is None:
        return running
    names = [each.replace("-", "_") for each in RELOADED]
    wanted = replace(running, **{name: getattr(found, name) for name in names})
    most = wanted.max_replicas + 1
    if wanted.min_insync > most:
        raise Refused(
            f"ha.replication.min-insync is at most {most}, and not {wanted.min_insync}, until a "
            f"restart: it runs with max-replicas = {wanted.max_replicas}"
        )
    return wanted


def _can_ask(values: Mapping[str, Any], clusters: Collection[str]) -> bool:
    if values["witnesses"] or values["lock-manager"] != "votes":
        return True
    wants = values["quorum-size"] >= 2 or values["vote-on-replication-failure"] is True
    return bool(clusters) and wants


def _check(values: Mapping[str, Any], clusters: Collection[str], *, can_ask: bool) -> None:
    if values["witnesses"] and values["lock-manager"] != "votes":
        raise Refused(
            f'ha.replication.lock-manager = "{values["lock-manager"]}" takes the place of '
            "witnesses: name one of both"
        )
    if values["cluster-name"] is not None and values["cluster-name"] not in clusters:
        raise Refused(
            f"ha.replication.cluster-name names [cluster.{values['cluster-name']}], which is not "
            "there"
        )
    if values["min-insync"] > values["max-replicas"] + 1:
        raise Refused(
            f"ha.replication.min-insync is at most max-replicas + 1, that is "
            f"{values['max-replicas'] + 1}, not {values['min-insync']}: the live is one copy"
        )
    if values["vote-on-replication-failure"] is True and not can_ask:
        raise Refused(
            "ha.replication.vote-on-replication-failure is true, and there is nobody to ask: name "
            "witnesses, a lock-manager, or a [cluster.NAME]"
        )
    if values["on-partition"] is not None and can_ask:
        raise Refused(
            "ha.replication.on-partition is for a pair with nobody to ask: here a vote decides"
        )
    if values["on-partition"] is None and not can_ask and values["activation"] == "auto":
        raise Refused(MISSING)
