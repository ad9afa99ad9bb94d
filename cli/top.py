"""`shmbroker top`: live view of all queues."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.connection import observed, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.output import json_option, print_json, table_lines, visible
from shmbroker.cli.rates import read, rows
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
    shmbroker top --url tcp://orders.example
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
