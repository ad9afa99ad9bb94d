"""`shmbroker queue`, of its messages: look at them, move, copy, send back, export, import."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import click

from shmbroker.cli.connection import (
    connected,
    is_over_link,
    observed,
    queue_named,
    vhost_option,
)
from shmbroker.cli.fields import (
    browsed_fields,
    scheduled_fields,
)
from shmbroker.cli.group import verb
from shmbroker.cli.names import queue_names
from shmbroker.cli.output import (
    columns_left,
    excerpt,
    json_option,
    print_json,
    print_table,
    say,
)
from shmbroker.cli.queue import contents, name_argument
from shmbroker.cli.selector import selector_option, selects
from shmbroker.cli.units import COUNT, DURATION, format_count, format_size

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.queue.moving import Passed
    from shmbroker.ipc.queue.queue import Queue
    from shmbroker.ipc.selector.selector import Selector

EXCERPT_COLUMNS_TAKEN = 60
BATCH = 256  # messages: Ctrl-C is noticed after so many
PAGER_SECONDS = 5.0
"""So long a move waits for the pager, which may have no room, or whose disk may be slow."""

source_argument = click.argument("source", metavar="FROM", shell_complete=queue_names)
target_argument = click.argument("target", metavar="TO", shell_complete=queue_names)
count_option = click.option(
    "--count", metavar="N", type=COUNT,
    help="Not more than so many.  [default: as many as are there now]",
)  # fmt: skip
room_option = click.option(
    "--timeout", type=DURATION, help="Wait so long while TO is full.  [for ever; with --url not]",
    callback=lambda _ctx, _option, value: 0.0 if value is None and is_over_link() else value,
)  # fmt: skip


@verb(
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


def state_of(message: CopiedMessage) -> str:
    """The state of a message: ready, taken and by which participant, or not on disk yet."""
    if not message.is_confirmed:
        return "unconfirmed"
    if message.taken_by is not None:
        return f"taken by {message.taken_by}"
    return "taken" if message.is_taken else "ready"


@verb(
    examples="""
    shmbroker queue browse orders
    shmbroker browse orders
    shmbroker queue browse orders --count 1 --json
    shmbroker queue browse orders --selector 'table = 7'
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
@selector_option
@json_option
@vhost_option
def browse(
    name: str, count: int | None, unconfirmed: bool, selector: Selector | None, as_json: bool,
    vhost: str,
) -> None:  # fmt: skip
    """Show the messages of a queue without taking them.

    Of a durable queue, only messages that are on disk.  One that was taken shows by which
    participant; `shmbroker queue holders` lists who has how many.
    """
    with observed(vhost) as broker:
        browsed = queue_named(broker, name).browse(unconfirmed=unconfirmed)
        wanted = (message for message in browsed if selects(selector, message))
        messages = list(islice(wanted, count))
    if as_json:
        print_json([browsed_fields(message) for message in messages])
    else:
        columns = columns_left(EXCERPT_COLUMNS_TAKEN)
        print_table(
            ["POSITION", "STATE", "DELIVERIES", "KEY", "SIZE", "BODY"],
            [
                [
                    m.position,
                    state_of(m),
                    m.deliveries,
                    m.key,
                    format_size(len(m.body)),
                    excerpt(m.body, columns),
                ]
                for m in messages
            ],
        )


@verb(
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


@verb(
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


@verb(
    examples="""
    shmbroker queue move orders.dead orders
    shmbroker queue move orders orders.later --count 100
    shmbroker queue move orders orders.red --selector "colour = 'red'"
    """
)
@source_argument
@target_argument
@count_option
@selector_option
@room_option
@vhost_option
def move(
    source: str, target: str, count: int | None, selector: Selector | None, timeout: float | None,
    vhost: str,
) -> None:  # fmt: skip
    """Move messages, with key and properties, to another queue.

    Each message is published to TO before it leaves FROM.  A crash in between can leave one message
    in both queues.  No message is lost.

    Scheduled messages and those that consumers have taken stay.  Those in page files follow as the
    broker brings them into memory, but for those that --selector is about.  Without --count and
    --selector it exits with 1 if something stays, and says what.
    """
    with connected(vhost) as broker:
        taken_from, given_to = two_queues(broker, source, target)
        most = matching(taken_from, selector) if count is None else count
        moved, has_no_room = pass_all(taken_from, given_to, most, selector, timeout, copies=False)
        if moved < most and has_no_room:
            raise click.ClickException(f"queue {target!r} is full; the others stay in {source!r}")
        if count is None and selector is None:
            refuse_what_stays(taken_from, is_short=moved < most)


def refuse_what_stays(queue: Queue, *, is_short: bool) -> None:
    """What is scheduled, in the hands of consumers, or in page files and not in memory yet."""
    left = queue.statistics()
    if left.scheduled or left.taken or left.paged or (is_short and left.depth):
        why = "; it is paused" if left.is_paused else ""
        raise click.ClickException(f"queue {queue.name!r} still has {contents(left)}{why}")


@verb(
    examples="""
    shmbroker queue copy orders orders.test
    shmbroker queue copy orders orders.test --count 10
    shmbroker queue copy orders orders.red --selector "colour = 'red'"
    """
)
@source_argument
@target_argument
@count_option
@selector_option
@room_option
@vhost_option
def copy(
    source: str, target: str, count: int | None, selector: Selector | None, timeout: float | None,
    vhost: str,
) -> None:  # fmt: skip
    """Copy messages that no consumer has taken, with key and properties."""
    with connected(vhost) as broker:
        copied_from, given_to = two_queues(broker, source, target)
        most = matching(copied_from, selector) if count is None else count
        copied, has_no_room = pass_all(copied_from, given_to, most, selector, timeout, copies=True)
        if copied < most and has_no_room:
            raise click.ClickException(f"queue {target!r} is full")


def two_queues(broker: Broker, source: str, target: str) -> tuple[Queue, Queue]:
    if source == target:
        raise click.UsageError("a queue cannot be moved or copied to itself")
    return queue_named(broker, source), queue_named(broker, target)


def matching(queue: Queue, selector: Selector | None) -> int:
    """How many messages of a queue match now."""
    if selector is None:
        return queue.statistics().depth
    return sum(selects(selector, message) for message in queue.browse())


def pass_all(
    source: Queue, target: Queue, most: int, selector: Selector | None, timeout: float | None,
    *, copies: bool,
) -> tuple[int, bool]:  # fmt: skip
    """Move or copy, and say how many: also whether it stopped for want of room."""
    from shmbroker.ipc.base.errors import Error

    done, has_no_room = 0, False
    try:
        for batch in batches(source, target, most, selector, timeout, copies=copies):
            done, has_no_room = done + batch.messages, batch.is_full
    except Error as error:
        done += error.published
        raise
    finally:
        verb = "copied" if copies else "moved"
        say(f"{format_count(done, 'message')} {verb} from {source.name!r} to {target.name!r}")
    return done, has_no_room


def batches(
    source: Queue, target: Queue, most: int, selector: Selector | None, timeout: float | None,
    *, copies: bool,
) -> Iterator[Passed]:  # fmt: skip
    """What was passed over is known before we wait for room: Ctrl-C may end that."""
    from shmbroker.ipc.base.nap import longer

    if most > 0 and copies and is_over_link():  # it begins at the head each time, and never waits
        yield passed(source, target, most, selector, timeout, copies=True)
        return
    begin, nap, moved_at = 0, 0.0, time.monotonic()
    while most > 0:
        limit = min(BATCH, most)
        batch = passed(source, target, limit, selector, 0, copies=copies, begin=begin)
        if batch.messages == 0:
            batch = passed(source, target, 1, selector, timeout, copies=copies, begin=begin)
        yield batch
        if batch.messages > 0:
            nap, moved_at = 0.0, time.monotonic()
        elif copies or selector or batch.is_full or not comes_out_of_pages(source, moved_at):
            return
        else:
            nap = longer(nap)
            time.sleep(nap)
        most -= batch.messages
        begin = batch.end if copies else 0


def comes_out_of_pages(queue: Queue, since: float) -> bool:
    """Some is in page files, a broker brings it into memory, and it is not long since it did."""
    from shmbroker.ipc.vhost import vhost as vhosts

    if time.monotonic() >= since + PAGER_SECONDS or queue.statistics().paged == 0:
        return False
    return is_over_link() or vhosts.has_pager(queue._broker.vhost)


def passed(
    source: Queue, target: Queue, limit: int, selector: Selector | None,
    timeout: float | None, *, copies: bool, begin: int = 0,
) -> Passed:  # fmt: skip
    from shmbroker.ipc.queue.moving import pass_over

    if not is_over_link():
        return pass_over(source, target, limit, selector, timeout, copies=copies, begin=begin)
    return passed_far(source, target, limit, selector, timeout, copies=copies)


def passed_far(
    source: Any, target: Any, limit: int, selector: Selector | None, timeout: float | None,
    *, copies: bool,
) -> Passed:  # fmt: skip
    """By the broker; or here, where the url is that of this host."""
    from shmbroker.ipc.queue.moving import pass_over
    from shmbroker.netbridge.client.near import handles
    from shmbroker.netbridge.client.queue import Queue as Far
    from shmbroker.netbridge.client.waiting import finished

    here, there = handles((source, target))
    if not isinstance(here, Far):
        return pass_over(here, there, limit, selector, timeout, copies=copies)
    verb = "copy_to" if copies else "move_to"
    return finished(here._move(verb, there, limit, selector, timeout))


@verb(
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


@verb(
    "import",
    examples="""
    shmbroker queue import orders < orders.jsonl
    shmbroker queue export orders | shmbroker queue import orders --vhost other
    """,
)
@name_argument
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--skip-bad", is_flag=True, help="Skip lines that are no message, or too large.")
@click.option(
    "--timeout", type=DURATION, help="Wait at most this long while the queue is full.  [for ever]"
)
@vhost_option
def import_(name: str, file: IO[bytes], skip_bad: bool, timeout: float | None, vhost: str) -> None:
    """Publish the messages that `export` wrote, from FILE or stdin."""
    from shmbroker.ipc.queue.export import importing

    published = 0
    with connected(vhost) as broker:
        skip = say if skip_bad else None
        queue = queue_named(broker, name)
        try:
            for count in importing(queue, file, timeout=timeout, skip=skip):
                published = count
        finally:
            say(f"{format_count(published, 'message')} to queue {name!r}")
