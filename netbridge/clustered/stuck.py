"""Messages on their way to other nodes of a cluster that do not go on, and groups that lead there.

Of each node it is looked at the queue towards it, and at what the broker here knows of it: one that
is not known was forgotten, and what waits finds no room; or it was scaled down and had no heir.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.queue.grouped import ROUTES, SEPARATOR
from shmbroker.netbridge.broker.delayed import LONG_SECONDS, behind
from shmbroker.netbridge.broker.gates import TOWARDS
from shmbroker.netbridge.broker.waiting import waiting

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

MISSING: Final = "missing"
FORGOTTEN: Final = "forgotten"
NAMES_MAX: Final = 3


def findings(broker: Broker, folder: Path, told: Mapping[str, Any]) -> Iterator[Finding]:
    """`told`: what `cluster list` shows of the broker in this folder."""
    from shmbroker.netbridge.clustered.towards import way_of  # and sockets with it

    known = {each["node"]: each for each in told.get("nodes", ())}
    for queue in sorted(broker._catalog.queue_names().values()):
        if (way := way_of(queue)) is None:
            continue
        (cluster, node), (count, age) = way, waiting(broker, queue)
        if count and cluster != told.get("cluster"):
            yield _of_another(folder, cluster, queue, count, age)
        elif count:
            yield from _behind(folder, known.get(node.hex()), queue, count, age)
    if not told:
        return
    yield from _orphaned(broker, folder, known, f"{TOWARDS}{told['cluster']}.")
    yield from _alone(told)


def _of_another(
    folder: Path, cluster: str, queue: str, count: int, age: float | None
) -> Finding:
    return Finding(
        "warning", f"queue {queue!r}",
        f"the broker in {folder} is in no cluster {cluster!r} any more{behind(count, age)}",
        f"they go on when it is started with [cluster.{cluster}], and max-hops of 1 or more",
    )  # fmt: skip


def _behind(
    folder: Path, node: Mapping[str, Any] | None, queue: str, count: int, age: float | None
) -> Iterator[Finding]:
    name = queue if node is None else node["name"]
    state = FORGOTTEN if node is None else node["state"]
    subject = f"node {name!r}, as the broker in {folder} knows it"
    problem = f"it is {state}{behind(count, age)}"
    if state == FORGOTTEN:
        yield Finding(
            "warning", subject, problem,
            "if it was forgotten they go to queues of their names as soon as there is room, see "
            f"shmbroker cluster queues {folder}; if it was scaled down, forget the node that got "
            "its messages, unless that one is there; else start it, or: shmbroker cluster forget "
            f"{folder} {queue.rpartition('.')[2]}",
        )  # fmt: skip
    elif state == MISSING:
        remedy = f"start it: its last address was {(node or {})['address']}"
        yield Finding("warning", subject, problem, remedy)
    elif age is not None and age > LONG_SECONDS:
        remedy = f"see whether its queues are full: shmbroker cluster queues {folder}"
        yield Finding("warning", subject, problem, remedy)


def _orphaned(
    broker: Broker, folder: Path, known: Mapping[str, Mapping[str, Any]], prefix: str
) -> Iterator[Finding]:
    """Groups whose messages go to a node that is not there."""
    if ROUTES not in broker._catalog.queue_names().values():  # there is no grouping handler
        return
    newest = {each.key or "": bytes(each.body) for each in broker.queue(ROUTES).browse()}
    lost: dict[str, list[str]] = {}
    for key, route in newest.items():
        queue, separator, group = key.partition(SEPARATOR)
        to = route.decode(errors="replace")
        if not separator or not to.startswith(prefix):
            continue
        row = known.get(to.removeprefix(prefix))
        if row is None or row["state"] == MISSING:
            name = to.removeprefix(prefix) if row is None else str(row["name"])
            lost.setdefault(name, []).append(f"{group} of {queue}")
    for name, groups in lost.items():
        more = f" and {len(groups) - NAMES_MAX:,} more" if len(groups) > NAMES_MAX else ""
        yield Finding(
            "warning",
            f"node {name!r}, as the broker in {folder} knows it",
            f"messages of groups go there, and it is not there: "
            f"{', '.join(sorted(groups)[:NAMES_MAX])}{more}",
            "start it again; see where groups go: shmbroker group list",
        )


def _alone(told: Mapping[str, Any]) -> Iterator[Finding]:
    """Nodes of several members of which only one is there."""
    names = Counter(each["name"] for each in told["nodes"])
    for each in told["nodes"]:
        if len(each["group"]) > 1 and not each["backups"] and each["state"] != MISSING:
            which = "" if names[each["name"]] == 1 else f" ({each['node'][:8]})"
            yield Finding(
                "warning", f"node {each['name']!r}{which} of cluster {told['cluster']!r}",
                "its live has no backup: what it has is gone with its host",
                f"start another one of its members: {', '.join(each['group'])}",
            )  # fmt: skip
