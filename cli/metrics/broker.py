"""The metrics of a broker, from its run/, its store and its heartbeat in shared memory.

It is asked to say anew what it has not in shared memory, and has `ASKED_SECONDS` for that.  If it
does not answer, what it has said last is shown, with its age.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from shmbroker.cli.colocated import FILE as COLOCATED
from shmbroker.cli.metrics.sheet import Sheet
from shmbroker.cli.scale_down import FILE as SCALE_DOWN
from shmbroker.ipc.base import trust
from shmbroker.ipc.instance import beat, ordering, status
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.process import stands_still
from shmbroker.ipc.instance.status import DOWN, RUN, Status
from shmbroker.ipc.instance.store import journal_of
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.netbridge.cluster.handler import STATES as GROUPING
from shmbroker.netbridge.clustered.shown import FILE as CLUSTER
from shmbroker.netbridge.clustered.shown import is_configured
from shmbroker.netbridge.member.draining import Phase
from shmbroker.netbridge.member.standing import State as Standing
from shmbroker.netbridge.pair.told import State as PairState
from shmbroker.netbridge.serving.programs import PROGRAMS

ASKED_SECONDS: Final = 0.1
STATES: Final = (DOWN, "starting", "passive", "promoting", "restoring", "live", "handing over",
                 "stopped", "failed")  # fmt: skip
LEVELS: Final = ("shm", "disk", "replicated", "disk+replicated")
PARTS: Final = {"ha": "ha", "pair": "ha", CLUSTER: "cluster", "replicas": "replicas",
                PROGRAMS: PROGRAMS}  # fmt: skip
"""Files of run/, and the noun of the order that has the broker write each."""
NODE_DIGITS: Final = 8


def collect(sheet: Sheet, config: Config) -> None:
    found = status.read(config.folder)
    labels = (config.vhost, config.name)
    is_stopped = found.process is not None and stands_still(found.process.pid)
    sheet.put("up", found.process is not None, *labels)
    sheet.put("stopped", is_stopped, *labels)
    sheet.put_one("broker_state", found.state, STATES, *labels)
    sheet.put("broker_role", 1, *labels, config.role, config.policy)
    sheet.put("broker_epoch", found.epoch, *labels)
    if found.state == "live" and (age := beat.age_of(config.vhost, found.epoch)) is not None:
        sheet.put("journal_turn_age_seconds", age, *labels)
    of_store(sheet, config, labels)
    of_cluster_life(sheet, config.folder, found, labels)
    parts = shown(config.folder, asks=found.process is not None and not is_stopped)
    for part, (told, age) in parts.items():
        sheet.put("shown_age_seconds", age, *labels, part)
        SHOWING[part](sheet, told, found, labels)


def of_store(sheet: Sheet, config: Config, labels: tuple[str, str]) -> None:
    """Nothing if it is not mounted."""
    try:
        room = os.statvfs(config.store)
        sizes = [each.stat().st_size for each in files(journal_of(config))]
    except OSError:
        return
    sheet.put("store_free_bytes", room.f_bavail * room.f_frsize, *labels)
    sheet.put("journal_bytes", sum(sizes), *labels)
    sheet.put("journal_segments", len(sizes), *labels)


def of_cluster_life(
    sheet: Sheet, folder: Path, found: Status, labels: tuple[str, str]
) -> None:
    """Backups that brokers run for each other, and what a live gives away before it ends.

    The broker writes both when they change, so it is not asked.
    """
    if found.process is None:
        return
    hosted, moved = (
        read_whole(folder / RUN / file, trust.seen_files()) for file in (COLOCATED, SCALE_DOWN)
    )
    if hosted.get("process") == found.process.pid:
        sheet.put("hosted_backups", len(hosted["runs"]), *labels)
        if "backup" in hosted:
            sheet.put("hosted_backup_up", bool(hosted["backup"]), *labels)
    if moved.get("process") == found.process.pid and moved.get("to"):
        sheet.put("scale_down_messages", moved["of-messages"], *labels)
        sheet.put("scale_down_moved_messages", moved["messages"], *labels)


def files(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return [each for each in found if each.name.endswith(".journal")]


def shown(folder: Path, *, asks: bool) -> dict[str, tuple[dict[str, Any], float]]:
    """What the broker has said of each part of itself, and how long ago."""
    run = folder / RUN
    there = [part for part in PARTS if (run / part).exists()]
    for noun in dict.fromkeys(PARTS[part] for part in there) if asks else ():
        ordering.asked_to_show(folder, noun, ASKED_SECONDS, waits=False)
    found = {}
    for part in there:
        told = read_whole(run / part, trust.seen_files())
        if told and (part != CLUSTER or is_configured(folder, told)):
            found[part] = told, max(0.0, time.time() - (run / part).stat().st_mtime)
    return found


# --- parts ----------------------------------------------------------------------------------------


def of_member(
    sheet: Sheet, told: Mapping[str, Any], found: Status, labels: tuple[str, str]
) -> None:
    replication = found.replication if found.process is not None else DOWN
    state = replication.partition(":")[0].partition(",")[0]
    if state.startswith(Standing.SYNCING.value):  # with its progress
        state = Standing.SYNCING.value
    phases = (each.value for each in Phase if each is not Phase.NONE)
    states = (*(each.value for each in Standing), *phases)
    sheet.put_one("replication_state", state, states, *labels)
    sheet.put_one("durability_level", str(told["level"]), LEVELS, *labels)
    sheet.put("in_sync_members", len(told["in-sync"]), *labels)
    for each in told["replicas"]:
        sheet.put("replica_in_sync", each["in-sync"], *labels, each["member"])
        sheet.put("replica_lag_bytes", each.get("lag-bytes", 0), *labels, each["member"])
        sheet.put("replica_lag_seconds", each.get("lag-ms", 0) / 1e3, *labels, each["member"])
    voters = Counter(told["voters"].values())
    sheet.put("voters", voters.total(), *labels)
    sheet.put("voters_linked", voters["linked"], *labels)


def of_pair(sheet: Sheet, told: Mapping[str, Any], found: Status, labels: tuple[str, str]) -> None:
    state = str(told["pair"]) if found.process is not None else found.state
    sheet.put_one("pair_state", state, (each.value for each in PairState), *labels)
    if found.process is not None and told["silence"] is not None:
        sheet.put("pair_silence_seconds", told["silence"], *labels)


def of_cluster(
    sheet: Sheet, told: Mapping[str, Any], found: Status, labels: tuple[str, str]
) -> None:
    for each in told["nodes"]:
        node = f"{each['name']}/{each['node'][:NODE_DIGITS]}"
        is_up = each["state"] == "up" or (each["state"] == "here" and found.process is not None)
        sheet.put("cluster_node_up", is_up, *labels, node)
        sheet.put("cluster_node_backups", len(each["backups"]), *labels, node)
        if "waiting" in each:
            sheet.put("cluster_node_waiting", each["waiting"], *labels, node)
    sheet.put("cluster_lives", told["lives"], *labels)
    sheet.put("cluster_can_vote", bool(told["can-vote"]), *labels)
    sheet.put("cluster_duplicates", len(told["duplicates"]), *labels)
    if (groups := told.get("grouping")) is not None:
        of_groups(sheet, groups, labels)


def of_groups(sheet: Sheet, told: Mapping[str, Any], labels: tuple[str, str]) -> None:
    sheet.put_one("grouping_state", str(told["state"]), GROUPING, *labels)
    sheet.put("groups", told["groups"], *labels)
    sheet.put("groups_unreached", told["unreached"], *labels)
    sheet.put("groups_waiting", told["waiting"], *labels)
    for counter in ("proposals", "rejections", "timeouts"):
        sheet.put(f"group_{counter}_total", told[counter], *labels)


def of_programs(
    sheet: Sheet, told: Mapping[str, Any], found: Status, labels: tuple[str, str]
) -> None:
    """One that waits has lost its link, and may come back."""
    programs = told[PROGRAMS] if found.process is not None else []
    linked = sum(each["attached"] for each in programs)
    sheet.put("sessions", linked, *labels, "linked")
    sheet.put("sessions", len(programs) - linked, *labels, "waiting")


def of_replicas(
    sheet: Sheet, told: Mapping[str, Any], found: Status, labels: tuple[str, str]
) -> None:
    for each in told["replicas"]:
        follows = found.process is not None and each["state"] == "following"
        sheet.put("queue_replica_following", follows, *labels, each["queue"])
        lag = each.get("lag-messages", 0)
        sheet.put("queue_replica_lag_messages", lag, *labels, each["queue"])


SHOWING: Final = {
    "ha": of_member,
    "pair": of_pair,
    CLUSTER: of_cluster,
    "replicas": of_replicas,
    PROGRAMS: of_programs,
}
