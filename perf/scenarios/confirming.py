"""What the scenarios can be asked that measure confirms: one at a time, and many outstanding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from shmbroker.perf.scenarios.command import DURATION, FILE, POSITIVE, SIZE, one_of, option, several

SIZES: Final = (64, 1024)
SINGLES: Final = 300


def options(peers: Iterable[str], seconds: float) -> tuple[click.Option, ...]:
    """`seconds`: of many outstanding, if nothing is said."""
    return (
        several("--peer", "peers", type=one_of("peer", peers), metavar="NAME",
                help="Measure only this peer and ours."),
        several("--size", "sizes", type=SIZE, metavar="SIZE",
                help="Size of a message.  [64, 1KiB]"),
        option("--rounds", type=POSITIVE, default=5, show_default=True,
               help="Rounds of each peer, in turns."),
        option("--singles", type=click.IntRange(min=2), default=SINGLES, show_default=True,
               metavar="N", help="Confirms one at a time in a round."),
        option("--seconds", type=DURATION, default=seconds,
               help=f"Time of many outstanding.  [{seconds * 1000:.0f}ms]"),
        option("--folder", type=FILE, default=".", metavar="DIR",
               help="A folder on the disk to measure."),
    )  # fmt: skip
