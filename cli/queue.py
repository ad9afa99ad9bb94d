"""`shmbroker queue`: declare, list, explain, purge, pause and delete queues."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.connection import (
    connected,
    critical_queues,
    is_over_link,
    observed,
    queue_named,
    vhost_option,
)
from shmbroker.cli.fields import (
    group_fields,
    holder_fields,
    queue_fields,
    statistics_fields,
)
from shmbroker.cli.group import LazyGroup, verb
from shmbroker.cli.names import queue_names
from shmbroker.cli.output import (
    confirm,
    json_option,
    names_option,
    print_json,
    print_names,
    print_pairs,
    print_table,
    say,
    yes_option,
)
from shmbroker.cli.queue_replica import start, start_replica_option
from shmbroker.cli.setting import given, setting_options
from shmbroker.cli.units import COUNT, format_count, format_duration, format_size

if TYPE_CHECKING:
    from shmbroker.ipc.latency.statistics import QueueStatistics

LATENCIES = ("p50", "p99", "max")
LISTED = 10
"""So many of a queue's gates and origins are shown to people."""


VERBS = {
    "browse": "messages:browse",
    "copy": "messages:copy",
    "declare": "queue:declare",
    "delete": "queue:delete",
    "explain": "queue:explain",
    "export": "messages:export",
    "get": "get:get",
    "groups": "queue:groups",
    "holders": "queue:holders",
    "import": "messages:import_",
    "latency": "recording:latency",
    "list": "queue:list_",
    "move": "messages:move",
    "pause": "queue:pause",
    "purge": "queue:purge",
    "resume": "queue:resume",
    "retry": "messages:retry",
    "scheduled": "messages:scheduled",
    "stat": "queue:stat",
    "value": "messages:value",
}


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    examples="""
    shmbroker queue declare orders
    shmbroker queue list
    shmbroker queue stat orders
    """,
)
def queue() -> None:
    """Queues of messages."""


name_argument = click.argument("name", shell_complete=queue_names)


@verb(
    examples="""
    shmbroker queue declare orders
    shmbroker queue declare ticks --slots 65536 --when-full drop-oldest
    shmbroker queue declare orders --max-deliveries 3 --dead-letter orders.dead
    shmbroker queue declare --broker standby --start-replica node1 orders
    """
)
@click.argument("name")
@click.option(
    "--slots", metavar="N", type=COUNT, default=1024, show_default=True,
    help="Number of messages that the queue holds; a power of two.",
)  # fmt: skip
@setting_options()
@start_replica_option
@vhost_option
def declare(
    name: str,
    slots: int,
    vhost: str,
    start_replica: str | None,
    **settings: Any,
) -> None:
    """Declare a queue.  Does nothing if it already exists with these settings.

    Settings that are left out come from the patterns of `shmbroker settings`, or are defaults.
    `shmbroker queue explain` shows the result.

    With --start-replica the queue follows the one of its name on another broker
    (docs/queue-replicas.md).  Its settings are its own: what the other one decides arrives.
    """
    if start_replica is not None:
        start(start_replica, name, {"slots": slots, **given(settings)})
        return
    with connected(vhost) as broker:
        broker.declare_queue(name, slots=slots, **given(settings))
    say(f"queue {name!r}, {format_count(slots, 'slot')}")


@verb(
    "list",
    examples="""
    shmbroker queue list
    shmbroker queue list --names | xargs -n1 shmbroker queue stat
    shmbroker queue list --json | jq -r '.[] | select(.depth > 100) | .name'
    """,
)
@json_option
@names_option
@vhost_option
def list_(as_json: bool, names: bool, vhost: str) -> None:
    """List all queues."""
    with observed(vhost) as broker:
        found = broker.queues()
        critical = {} if names else critical_queues(broker)
    if as_json:
        print_json([queue_fields(q, critical.get(q.name)) for q in found])
    elif names:
        print_names(q.name for q in found)
    else:
        print_table(
            ["NAME", "DEPTH", "SLOTS", "PUBLISHED", "CONSUMERS", "PRODUCERS", "STATE"],
            [
                [
                    q.name,
                    q.depth,
                    q.slots,
                    q.published,
                    q.consumers,
                    q.producers,
                    state_of(q.paused, critical.get(q.name)),
                ]
                for q in found
            ],
        )


def state_of(is_paused: bool, critical: str | None) -> str:
    state = "paused" if is_paused else "running"
    return state if critical is None else f"{state}, CRITICAL: {critical.partition(':')[0]}"


@verb(
    examples="""
    shmbroker queue stat orders
    shmbroker queue stat orders --json | jq .depth
    """
)
@name_argument
@json_option
@vhost_option
def stat(name: str, as_json: bool, vhost: str) -> None:
    """Show the statistics of a queue.

    `critical` says what is wrong if the queue needs a broker and has none.  `origins` are streams
    of messages that come from elsewhere, and up to which position each is known here.
    """
    with observed(vhost) as broker:
        found = queue_named(broker, name)
        critical = critical_queues(broker).get(name)
        statistics, gates = found.statistics(), found.gates()
        fields = statistics_fields(
            found.name, found.slots, found.is_paused, critical,
            found.explain()["replicate"].value, statistics, gates, found.origins(),
        )  # fmt: skip
    if as_json:
        print_json(fields)
    else:
        fields["latency"] = latency_text(fields["latency"])
        for listed in ("gates", "origins"):
            fields[listed] = texts(fields[listed])
        print_pairs({key.replace("_", " "): value for key, value in fields.items()})


@verb(
    examples="""
    shmbroker queue groups orders
    shmbroker queue groups orders --json | jq -r '.[] | select(.participant == null) | .group'
    """
)
@name_argument
@json_option
@vhost_option
def groups(name: str, as_json: bool, vhost: str) -> None:
    """List the message groups of a queue and the participant that each is bound to.

    A line without a group shows a participant that has groups without messages, or the active
    consumer of a queue with a single active consumer.
    """
    with observed(vhost) as broker:
        found = queue_named(broker, name).groups()
    if as_json:
        print_json([group_fields(info) for info in found])
    else:
        print_table(
            ["GROUP", "PARTICIPANT", "WAITING", "TAKEN"],
            [[info.group, info.participant, info.waiting, info.taken] for info in found],
        )


@verb(
    examples="""
    shmbroker queue holders orders
    shmbroker queue holders orders --json | jq -r 'max_by(.taken).name'
    """
)
@name_argument
@json_option
@vhost_option
def holders(name: str, as_json: bool, vhost: str) -> None:
    """List who has messages of a queue that were taken and not acknowledged yet.

    PARTICIPANT is the ID of `shmbroker participants`, where programs on other hosts are shown with
    their address.  FIRST is the position of the first message that it has, and PUBLISHED how long
    ago that one was published.  `shmbroker disconnect` gives back what a participant has.
    """
    with observed(vhost) as broker:
        found = queue_named(broker, name).holders()
        participants = {each.id: each for each in broker.participants()}
    rows = [holder_fields(each, participants.get(each.participant)) for each in found]
    if as_json:
        print_json(rows)
        return
    print_table(
        ["PARTICIPANT", "PID", "NAME", "STATE", "TAKEN", "BYTES", "FIRST", "PUBLISHED"],
        [
            [each["participant"], None if each["pid"] is None else str(each["pid"]), each["name"],
             each["state"], each["taken"], format_size(each["bytes"]), each["position"],
             f"{format_duration(max(0.0, time.time() - each['published_at'] / 1e9))} ago"]
            for each in rows
        ],
    )  # fmt: skip


def texts(listed: list[dict[str, Any]]) -> str:
    """The first of them, and how many more there are."""
    shown = [each["text"] for each in listed[:LISTED]]
    more = [f"and {len(listed) - LISTED:,} more"] if len(listed) > LISTED else []
    return "; ".join(shown + more) or "none"


def latency_text(latency: dict[str, int] | None) -> str | None:
    """Latency from publish to take as text; None if nothing was recorded."""
    if latency is None:
        return None
    p50, p99, most = (format_duration(latency[f"{name}_ns"] / 1e9) for name in LATENCIES)
    return f"p50 {p50}, p99 {p99}, max {most}"


@verb(examples="shmbroker queue purge orders --yes")
@name_argument
@yes_option
@vhost_option
def purge(name: str, yes: bool, vhost: str) -> None:
    """Drop all messages that no consumer has taken, and all scheduled messages."""
    with connected(vhost) as broker:
        found = queue_named(broker, name)
        confirm(yes, f"throw away all messages of queue {name!r}")
        purged = found.purge()
    say(f"{format_count(purged, 'message')} of queue {name!r} thrown away")


@verb(
    examples="""
    shmbroker queue explain orders
    shmbroker queue explain orders --json | jq .ttl
    """
)
@name_argument
@json_option
@vhost_option
def explain(name: str, as_json: bool, vhost: str) -> None:
    """Show the settings of a queue and the source of each."""
    with observed(vhost) as broker:
        found = queue_named(broker, name).explain()
    if as_json:
        print_json({key: {"value": e.value, "source": e.source} for key, e in found.items()})
    else:
        rows = [[key.replace("_", " "), e.value, e.source] for key, e in found.items()]
        print_table(["SETTING", "VALUE", "FROM"], rows)


@verb(examples="shmbroker queue pause orders")
@name_argument
@vhost_option
def pause(name: str, vhost: str) -> None:
    """Pause a queue: consumers get no messages until `resume`.

    A durable queue that is restored from the journal, after a restart of the machine or on another
    host, delivers again.
    """
    with connected(vhost) as broker:
        queue_named(broker, name).pause()
    say(f"queue {name!r} is paused; to go on: shmbroker queue resume {name}")


@verb(examples="shmbroker queue resume orders")
@name_argument
@vhost_option
def resume(name: str, vhost: str) -> None:
    """Resume a paused queue."""
    with connected(vhost) as broker:
        queue_named(broker, name).resume()
    say(f"queue {name!r} is running")


@verb(examples="shmbroker queue delete orders --yes")
@name_argument
@click.option("--force", is_flag=True, help="Delete it even if another participant has it open.")
@yes_option
@vhost_option
def delete(name: str, force: bool, yes: bool, vhost: str) -> None:
    """Delete a queue and its messages."""
    with connected(vhost) as broker:
        queue = queue_named(broker, name)
        # over a link the broker would have it open for the look
        held = "its messages" if is_over_link() else contents(queue.statistics())
        confirm(yes, f"delete queue {name!r} with {held}")
        broker.delete_queue(name, force=force)
    say(f"queue {name!r} is deleted with {held}")


def contents(of: QueueStatistics) -> str:
    """All that a queue has: 1,002 messages (2 taken, 900 paged) and 1 scheduled message."""
    counts = {"taken": of.taken, "paged": of.paged}
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    there = format_count(of.depth, "message") + (f" ({kinds})" if kinds else "")
    later = format_count(of.scheduled, "scheduled message")
    return f"{there} and {later}" if of.scheduled else there
