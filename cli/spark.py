"""Spark for the verbs of `shmbroker latency`: its own lines are hidden, its progress is shown."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.output import say
from shmbroker.cli.progress import ERASE, REDRAW_SECONDS
from shmbroker.cli.units import format_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def sparked(master: str | None, verbose: bool) -> Iterator[Any]:
    """A Spark session; errors become one-line messages."""
    try:
        from shmbroker.perf.spark.session import NoSpark, session
    except ImportError as error:
        raise click.ClickException(f"{error}: pip install 'shmbroker[latency]'") from None
    try:
        with own_lines(verbose):
            spark = session(master)
    except NoSpark as error:
        raise click.ClickException(str(error)) from None
    from pyspark.errors import PySparkException

    from shmbroker.perf.spark.spool import NoSpool
    from shmbroker.perf.spark.tables import NoTables

    try:
        with progress(spark):
            yield spark
    except (NoSpool, NoTables) as error:
        raise click.ClickException(str(error)) from None
    except PySparkException as error:
        raise click.ClickException(reason(str(error))) from None
    finally:
        spark.stop()


def reason(text: str) -> str:
    """The cause in a stack trace of Spark: our own line if there is one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("shmbroker.") and ": " in line]
    return ours[-1].partition(": ")[2] if ours else (lines or ["Spark failed"])[0]


@contextmanager
def own_lines(verbose: bool) -> Iterator[None]:
    """What Spark writes to stderr is shown if that is wanted, or if Spark does not start.

    Java inherits stderr when it is started and keeps it, so it is another file meanwhile.
    """
    if verbose:
        yield
        return
    say("starting Spark; --verbose shows what it says")
    sys.stderr.flush()
    ours = os.dup(sys.stderr.fileno())
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), sys.stderr.fileno())
        failed = True
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(ours, sys.stderr.fileno())
            os.close(ours)
            if failed:
                kept.seek(0)
                sys.stderr.write(kept.read().decode(errors="replace"))


@contextmanager
def progress(spark: SparkSession) -> Iterator[None]:
    """On a terminal, how many tasks of the stages that run are done, on one line."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=draw, args=(spark, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def draw(spark: SparkSession, ended: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not ended.wait(REDRAW_SECONDS):
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        tasks = sum(stage.numTasks for stage in stages if stage)
        done = sum(stage.numCompletedTasks for stage in stages if stage)
        text = f"Spark: {done:,} of {format_count(tasks, 'task')}" if tasks else ""
        sys.stderr.write(f"{ERASE}{text}")
        sys.stderr.flush()
    sys.stderr.write(ERASE)
    sys.stderr.flush()
