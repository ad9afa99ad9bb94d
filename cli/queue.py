"""`shmbroker queue`: declare, inspect, purge, move, pause and delete queues."""

from __future__ import annotations

import sys
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import click

from shmbroker.cli.connection import connected, observed, queue_named, vhost_option
from shmbroker.cli.fields import (
    browsed_fields,
    group_fields,
    queue_fields,
    scheduled_fields,
    statistics_fields,
)
from shmbroker.cli.group import Group
from shmbroker.cli.names import queue_names
from shmbroker.cli.output import (
    columns_left,
    confirm,
    excerpt,
    json_option,
    names_option,
    print_json,
    print_names,
    print_pairs,
    print_table,
    say,
    yes_option,
)  # fmt: skip
from shmbroker.cli.setting import given, setting_options
from shmbroker.cli.units import COUNT, DURATION, format_count, format_duration, format_size

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.latency.latency import Histogram
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.queue.queue import Queue

EXCERPT_COLUMNS_TAKEN = 60
BATCH = 256  # messages between two checks for Ctrl-C
LATENCIES = ("p50", "p99", "max")
PERCENTILES = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9, "p99_99": 99.99, "max": 100}


@click.group(
    cls=Group,
    examples="""
    shmbroker queue declare orders
    shmbroker queue list
    shmbroker queue stat orders
    """,
)
def queue() -> None:
    """Queues of messages."""


name_argument = click.argument("name", shell_complete=queue_names)
source_argument = click.argument("source", metavar="FROM", shell_complete=queue_names)
target_argument = click.argument("target", metavar="TO", shell_complete=queue_names)
count_option = click.option(
    "--count", metavar="N", type=COUNT,
    help="Number of messages.  [all that are in FROM now]",
)  # fmt: skip
room_option = click.option(
    "--timeout", type=DURATION, help="Wait at most this long while TO is full.  [for ever]"
)


@queue.command(
    examples="""
    shmbroker queue declare orders
    shmbroker queue declare ticks --slots 65536 --when-full drop-oldest
    shmbroker queue declare orders --max-deliveries 3 --dead-letter orders.dead
    """
)
@click.argument("name")
@click.option(
    "--slots", metavar="N", type=COUNT, default=1024, show_default=True,
    help="Number of messages that the queue holds; a power of two.",
)  # fmt: skip
@setting_options()
@vhost_option
def declare(name: str, slots: int, vhost: str, **settings: Any) -> None:
    """Declare a queue.  Does nothing if it already exists with these settings.

    Settings that are left out come from the patterns of `shmbroker settings`, or are defaults.
    `shmbroker queue explain` shows the result.
    """
    with connected(vhost) as broker:
        broker.declare_queue(name, slots=slots, **given(settings))
    say(f"queue {name!r}, {format_count(slots, 'slot')}")


@queue.command(
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
    if as_json:
        print_json([queue_fields(q) for q in found])
    elif names:
        print_names(q.name for q in found)
    else:
        print_table(
            ["NAME", "DEPTH", "SLOTS", "PUBLISHED", "CONSUMERS", "PRODUCERS", "STATE"],
            [
                [q.name, q.depth, q.slots, q.published, q.consumers, q.producers,
                 "paused" if q.paused else "running"]
                for q in found
            ],
        )  # fmt: skip


@queue.command(
    examples="""
    shmbroker queue stat orders
    shmbroker queue stat orders --json | jq .depth
    """
)
@name_argument
@json_option
@vhost_option
def stat(name: str, as_json: bool, vhost: str) -> None:
    """Show the statistics of a queue."""
    with observed(vhost) as broker:
        found = queue_named(broker, name)
        fields = statistics_fields(found.name, found.slots, found.is_paused, found.statistics())
    if as_json:
        print_json(fields)
    else:
        fields["latency"] = latency_text(fields["latency"])
        print_pairs({key.replace("_", " "): value for key, value in fields.items()})


@queue.command(
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


@queue.command(
    examples="""
    shmbroker queue value prices eur
    shmbroker queue value prices eur --json | jq .body
    """
)
@name_argument
@click.argument("key")
@json_option
@vhost_option
def value(name: str, key: str, as_json: bool, vhost: str) -> None:
    """Print the newest message of KEY in a last-value queue.

    The message stays in the queue.  Exits with 1 if there is none.
    """
    with observed(vhost) as broker:
        message = queue_named(broker, name).value(key)
    if message is None:
        raise click.ClickException(f"queue {name!r} has no message of key {key!r}")
    if as_json:
        print_json(browsed_fields(message))
    else:
        sys.stdout.buffer.write(message.body + b"\n")
        sys.stdout.flush()


def latency_text(latency: dict[str, int] | None) -> str | None:
    """Latency from publish to take as text; None if nothing was recorded."""
    if latency is None:
        return None
    p50, p99, most = (format_duration(latency[f"{name}_ns"] / 1e9) for name in LATENCIES)
    return f"p50 {p50}, p99 {p99}, max {most}"


def state_of(message: CopiedMessage) -> str:
    """The state of a message: ready, taken, or not on disk yet."""
    if not message.is_confirmed:
        return "unconfirmed"
    return "taken" if message.is_taken else "ready"


@queue.command(
    examples="""
    shmbroker queue browse orders
    shmbroker queue browse orders --count 1 --json
    shmbroker queue browse orders --unconfirmed
    """
)
@name_argument
@click.option("--count", metavar="N", type=COUNT, help="At most this many messages.")
@click.option(
    "--unconfirmed",
    is_flag=True,
    help="Durable queue: also show messages that are not on disk yet.",
)
@json_option
@vhost_option
def browse(name: str, count: int | None, unconfirmed: bool, as_json: bool, vhost: str) -> None:
    """Show the messages of a queue without taking them.

    Of a durable queue, only messages that are on disk.
    """
    with observed(vhost) as broker:
        browsed = queue_named(broker, name).browse(unconfirmed=unconfirmed)
        messages = list(islice(browsed, count))
    if as_json:
        print_json([browsed_fields(message) for message in messages])
    else:
        columns = columns_left(EXCERPT_COLUMNS_TAKEN)
        print_table(
            ["POSITION", "STATE", "DELIVERIES", "KEY", "SIZE", "BODY"],
            [
                [m.position, state_of(m), m.deliveries, m.key,
                 format_size(len(m.body)), excerpt(m.body, columns)]
                for m in messages
            ],
        )  # fmt: skip


@queue.command(
    examples="""
    shmbroker queue scheduled orders
    shmbroker queue scheduled orders --json | jq .[0].deliver_at
    shmbroker queue scheduled orders --cancel 17
    """
)
@name_argument
@click.option("--count", metavar="N", type=COUNT, help="At most this many messages.")
@click.option("--cancel", metavar="ID", type=int, help="Cancel the scheduled message with this id.")
@json_option
@vhost_option
def scheduled(name: str, count: int | None, cancel: int | None, as_json: bool, vhost: str) -> None:
    """List scheduled messages, the next one first."""
    if cancel is not None:
        return cancel_scheduled(name, cancel, vhost)
    with observed(vhost) as broker:
        messages = queue_named(broker, name).scheduled()[:count]
    if as_json:
        print_json([scheduled_fields(message) for message in messages])
    else:
        columns = columns_left(EXCERPT_COLUMNS_TAKEN)
        print_table(
            ["ID", "DUE", "DELIVERIES", "KEY", "SIZE", "BODY"],
            [
                [m.id, m.deliver_at.astimezone().isoformat(" ", "milliseconds"), m.deliveries,
                 m.key, format_size(len(m.body)), excerpt(m.body, columns)]
                for m in messages
            ],
        )  # fmt: skip


def cancel_scheduled(name: str, number: int, vhost: str) -> None:
    with connected(vhost) as broker:
        if not queue_named(broker, name).cancel_scheduled(number):
            raise click.ClickException(
                f"queue {name!r} has no scheduled message {number}: it was delivered or cancelled"
            )
    say(f"message {number} of queue {name!r} is not delivered")


@queue.command(examples="shmbroker queue purge orders --yes")
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


@queue.command(
    examples="""
    shmbroker queue move orders.dead orders
    shmbroker queue move orders orders.later --count 100
    """
)
@source_argument
@target_argument
@count_option
@room_option
@vhost_option
def move(source: str, target: str, count: int | None, timeout: float | None, vhost: str) -> None:
    """Move messages, with key and properties, to another queue.

    Each message is published to TO before it leaves FROM.  A crash in between can leave one message
    in both queues.  No message is lost.
    """
    moved = 0
    with connected(vhost) as broker:
        taken_from, given_to = two_queues(broker, source, target)
        most = taken_from.statistics().depth if count is None else count
        try:
            while moved < most:
                # Ctrl-C may end the wait for room, so count what was moved before it
                batch = taken_from.move_to(given_to, min(BATCH, most - moved))
                if batch == 0:
                    batch = taken_from.move_to(given_to, 1, timeout=timeout)
                if batch == 0:
                    break
                moved += batch
        finally:
            say(f"{format_count(moved, 'message')} moved from {source!r} to {target!r}")
        if moved < most and is_full(given_to):
            raise click.ClickException(f"queue {target!r} is full; the others stay in {source!r}")


@queue.command(
    examples="""
    shmbroker queue copy orders orders.test
    shmbroker queue copy orders orders.test --count 10
    """
)
@source_argument
@target_argument
@count_option
@room_option
@vhost_option
def copy(source: str, target: str, count: int | None, timeout: float | None, vhost: str) -> None:
    """Copy messages that no consumer has taken, with key and properties."""
    with connected(vhost) as broker:
        copied_from, given_to = two_queues(broker, source, target)
        most = copied_from.statistics().depth if count is None else count
        copied = copied_from.copy_to(given_to, count, timeout=timeout)
        say(f"{format_count(copied, 'message')} copied from {source!r} to {target!r}")
        if copied < most and is_full(given_to):
            raise click.ClickException(f"queue {target!r} is full")


def two_queues(broker: Broker, source: str, target: str) -> tuple[Queue, Queue]:
    if source == target:
        raise click.UsageError("a queue cannot be moved or copied to itself")
    return queue_named(broker, source), queue_named(broker, target)


def is_full(target: Queue) -> bool:
    most = target.explain()["max_messages"].value
    return target.statistics().depth >= min(target.slots, most or target.slots)


@queue.command(
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


@queue.command(
    examples="""
    shmbroker queue retry orders.dead
    shmbroker queue retry orders.dead --limit 10
    """
)
@name_argument
@click.option("--limit", metavar="N", type=COUNT, help="At most this many messages.")
@vhost_option
def retry(name: str, limit: int | None, vhost: str) -> None:
    """Send dead letters back to the queues that they came from.

    Each message is published there before it leaves this queue.  A crash in between can leave it
    in both.
    """
    with connected(vhost) as broker:
        done = queue_named(broker, name).retry(limit)
    say(f"{format_count(done.sent, 'message')} of queue {name!r} sent back")
    for why, count in done.stayed.items():
        say(f"{format_count(count, 'message')} stayed: {why}")
    if done.stayed:
        raise click.ClickException(f"not everything of queue {name!r} could be sent back")


@queue.command(
    examples="""
    shmbroker queue export orders > orders.jsonl
    shmbroker queue export orders | jq -r .body
    """
)
@name_argument
@vhost_option
def export(name: str, vhost: str) -> None:
    """Write the messages of a queue as lines of JSON, without taking them."""
    from shmbroker.ipc.queue.export import exported

    with observed(vhost) as broker:
        for line in exported(queue_named(broker, name)):
            click.echo(line)


@queue.command(
    "import",
    examples="""
    shmbroker queue import orders < orders.jsonl
    shmbroker queue export orders | shmbroker queue import orders --vhost other
    """,
)
@name_argument
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--skip-bad", is_flag=True, help="Skip lines that are not a message.")
@click.option(
    "--timeout", type=DURATION, help="Wait at most this long while the queue is full.  [for ever]"
)
@vhost_option
def import_(name: str, file: IO[bytes], skip_bad: bool, timeout: float | None, vhost: str) -> None:
    """Publish the messages that `export` wrote, from FILE or stdin."""
    from shmbroker.ipc.queue.export import imported

    with connected(vhost) as broker:
        skip = say if skip_bad else None
        count = imported(queue_named(broker, name), file, timeout=timeout, skip=skip)
    say(f"{format_count(count, 'message')} to queue {name!r}")


@queue.command(
    examples="""
    shmbroker queue latency orders on
    shmbroker queue latency orders on --digits 3 --highest 10s
    shmbroker queue latency orders on --one-in 16
    shmbroker queue latency orders
    shmbroker queue latency orders --json | jq '."publish-take".p99_ns'
    shmbroker queue latency orders off
    """
)
@name_argument
@click.argument("switch", metavar="[on|off]", type=click.Choice(["on", "off"]), required=False)
@click.option("--lowest", type=DURATION, help="Lowest time of the range.  [1ns, or as before]")
@click.option("--highest", type=DURATION, help="Highest time of the range.  [1h, or as before]")
@click.option(
    "--digits",
    type=click.IntRange(2, 3),
    help="Precision in significant digits.  [2, or as before]",
)
@click.option("--one-in", type=int, default=1, help="Record one message in 2, 4, 8 ...")
@json_option
@vhost_option
def latency(
    name: str,
    switch: str | None,
    lowest: float | None,
    highest: float | None,
    digits: int | None,
    one_in: int,
    as_json: bool,
    vhost: str,
) -> None:
    """Switch the recording of latencies on or off, or show the histograms.

    Records how long messages wait in the queue and how long consumers hold them.  A message is
    counted when it is acknowledged; that costs a few nanoseconds.  Another range or precision
    starts new histograms.
    """
    if switch is not None:
        with connected(vhost) as broker:
            found = queue_named(broker, name)
            found.latency(
                switch == "on", lowest=lowest, highest=highest, digits=digits, one_in=one_in
            )
        say(f"the latency of queue {name!r} is {'' if switch == 'on' else 'not '}recorded")
        return
    with observed(vhost) as broker:
        histograms = queue_named(broker, name).histograms()
    fields = {kind: latency_fields(each) for kind, each in histograms.items()}
    if as_json:
        print_json(fields)
        return
    if not fields:
        say(f"nothing was recorded: shmbroker queue latency {name} on")
    rows = [
        [kind, each["count"], *(format_duration(each[f"{key}_ns"] / 1e9) for key in PERCENTILES)]
        for kind, each in fields.items()
    ]
    headers = (key.upper().replace("_", ".") for key in PERCENTILES)
    print_table(["TIME", "COUNT", *headers], rows)


def latency_fields(histogram: Histogram) -> dict[str, int]:
    """The fields of a histogram in `--json`."""
    told = {"count": histogram.total, "overflow": histogram.overflow}
    told |= {f"{key}_ns": histogram.percentile(each) for key, each in PERCENTILES.items()}
    return told


@queue.command(examples="shmbroker queue pause orders")
@name_argument
@vhost_option
def pause(name: str, vhost: str) -> None:
    """Pause a queue: consumers get no messages until `resume`."""
    with connected(vhost) as broker:
        queue_named(broker, name).pause()
    say(f"queue {name!r} is paused; to go on: shmbroker queue resume {name}")


@queue.command(examples="shmbroker queue resume orders")
@name_argument
@vhost_option
def resume(name: str, vhost: str) -> None:
    """Resume a paused queue."""
    with connected(vhost) as broker:
        queue_named(broker, name).resume()
    say(f"queue {name!r} is running")


@queue.command(examples="shmbroker queue delete orders --yes")
@name_argument
@click.option("--force", is_flag=True, help="Delete it even if another participant has it open.")
@yes_option
@vhost_option
def delete(name: str, force: bool, yes: bool, vhost: str) -> None:
    """Delete a queue and its messages."""
    with connected(vhost) as broker:
        queue_named(broker, name)
        confirm(yes, f"delete queue {name!r} with its messages")
        broker.delete_queue(name, force=force)
    say(f"queue {name!r} is deleted")
