"""`shmbroker top`: live view of all queues."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.connection import observed, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.output import json_option, print_json, table_lines, visible
from shmbroker.cli.units import DURATION, format_count, format_number

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

HOME_AND_CLEAR = "\x1b[H\x1b[J"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HEADERS = [
    "QUEUE",
    "DEPTH",
    "SLOTS",
    f"{'IN/S':>9}",
    f"{'OUT/S':>9}",
    "CONSUMERS",
    "PRODUCERS",
    "OPEN IN",
]


@dataclass(frozen=True)
class Reading:
    """The queues, and the participants that have each open, at one moment."""

    at: float
    queues: dict[str, Any]
    holders: dict[str, list[str]]
    critical: dict[str, str]
    """What is wrong with queues that have not their live writer."""


def read(broker: Broker) -> Reading:
    from shmbroker.ipc.queue.writer import without_writer

    holders: dict[str, list[str]] = {}
    for participant in broker.participants():
        if participant.id == broker.participant:
            continue
        dead = "" if participant.state == "live" else f" ({participant.state})"
        for name in participant.queues:
            holders.setdefault(name, []).append(f"{participant.name}[{participant.pid}]{dead}")
    queues = {queue.name: queue for queue in broker.queues()}
    return Reading(time.monotonic(), queues, holders, without_writer(broker))


def rows(before: Reading, after: Reading) -> list[dict[str, Any]]:
    """The rates between two readings: queues without their writer first, then the busiest."""
    seconds = max(after.at - before.at, 1e-9)
    found = []
    for name, queue in after.queues.items():
        earlier = before.queues.get(name)
        if earlier is None or earlier.id != queue.id:  # a new queue has no earlier reading
            earlier = queue
        came = queue.published - earlier.published
        went = came - (queue.depth - earlier.depth)
        found.append(
            {
                "name": name,
                "depth": queue.depth,
                "slots": queue.slots,
                "paused": queue.paused,
                "in_per_second": came / seconds,
                "out_per_second": max(went, 0) / seconds,
                "consumers": queue.consumers,
                "producers": queue.producers,
                "open_in": after.holders.get(name, []),
                "critical": after.critical.get(name),
            }
        )
    found.sort(
        key=lambda row: (
            row["critical"] is None,
            -row["in_per_second"] - row["out_per_second"],
            -row["depth"],
        )
    )
    return found


def lines(vhost: str, found: list[dict[str, Any]]) -> list[str]:
    cells = [
        [
            row["name"] + (" (paused)" if row["paused"] else ""),
            row["depth"],
            row["slots"],
            f"{format_number(row['in_per_second']):>9}",
            f"{format_number(row['out_per_second']):>9}",
            row["consumers"],
            row["producers"],
            ", ".join(row["open_in"]),
        ]
        for row in found
    ]
    title = f"vhost {vhost}: {format_count(len(found), 'queue')}, {time.strftime('%H:%M:%S')}"
    critical = [
        f"CRITICAL: queue {visible(row['name'])}: {row['critical']}"
        for row in found
        if row["critical"]
    ]
    return [title, *critical, "", *table_lines(HEADERS, cells)]


@contextmanager
def other_screen() -> Iterator[None]:
    """Use the alternate screen and read single keys; restore the terminal at the end."""
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    sys.stdout.write(OTHER_SCREEN)
    try:
        yield
    finally:
        sys.stdout.write(OWN_SCREEN)
        sys.stdout.flush()
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def is_quit(seconds: float) -> bool:
    """Whether q is pressed within this time."""
    import select

    ends_at = time.monotonic() + seconds
    while (left := ends_at - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0]:
            keys = os.read(sys.stdin.fileno(), 64)
            if not keys or b"q" in keys.lower():
                return True
    return False


def watch(broker: Broker, interval: float) -> None:
    """Redraw until q is pressed."""
    import shutil

    before = read(broker)
    with other_screen():
        after = before
        while True:
            size = shutil.get_terminal_size()
            drawn = [line[: size.columns] for line in lines(broker.vhost, rows(before, after))]
            sys.stdout.write(HOME_AND_CLEAR + "\n".join(drawn[: size.lines - 1]))
            sys.stdout.flush()
            if is_quit(interval):
                return
            before, after = after, read(broker)


@click.command(
    cls=Verb,
    examples="""
    shmbroker top
    shmbroker top --once
    shmbroker top --once --interval 100ms --json | jq '.queues[0]'
    """,
)
@click.option("--interval", type=DURATION, default="1s", show_default=True,
    help="Time between two readings.")  # fmt: skip
@click.option("--once", is_flag=True, help="Print one table and exit.")
@json_option
@vhost_option
def top(interval: float, once: bool, as_json: bool, vhost: str) -> None:
    """Show depth, rates and participants of every queue; q quits.

    A queue that needs a broker and has none comes first, with a line that begins with CRITICAL.
    Rates are differences between two readings.  Without a terminal it prints a table for each
    reading.  Exits with 0 on q, with 130 on Ctrl-C.
    """
    with observed(vhost) as broker:
        if not (once or as_json) and sys.stdout.isatty() and sys.stdin.isatty():
            watch(broker, interval)
            return
        before = read(broker)
        while True:
            time.sleep(interval)
            after = read(broker)
            found = rows(before, after)
            if as_json:
                one_line = None if not once else 2
                seconds = after.at - before.at
                print_json({"vhost": vhost, "seconds": seconds, "queues": found}, one_line)
            else:
                click.echo("\n".join([*lines(vhost, found), *([] if once else [""])]))
            if once:
                return
            before = after
