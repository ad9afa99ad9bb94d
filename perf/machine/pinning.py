"""A process of a benchmark on one processor, so that none is moved while it is measured."""

import os


def pin(number: int) -> None:
    """To the so-manieth of the processors that we may use, round and round."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[number % len(allowed)]})
