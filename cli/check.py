"""`shmbroker check`: checks for Nagios and compatible monitoring.

A check prints one line, with its figures after a bar.  Exit codes: 0 ok, 1 warning, 2 critical,
3 unknown.  It runs in stages, the most basic first, and reports the worst level that it found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import click

from shmbroker.cli.connection import critical_queues, observed, queue_named, vhost_option
from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.names import queue_names
from shmbroker.cli.output import json_option, print_json, visible
from shmbroker.cli.units import DURATION, SIZE, format_count, format_duration, format_size
from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.queue.aside import of_queue, of_vhost
from shmbroker.ipc.queue.writer import without_writer

NAMES_MAX = 3
"""So many queues are named in a line."""


class Level(IntEnum):
    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


class Usage(click.UsageError):
    """A usage error is `unknown`: to Nagios the usual exit code 2 means a critical service."""

    exit_code = Level.UNKNOWN


class CheckGroup(Group):
    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with usage_is_unknown():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """What cannot be looked at is unknown, too: to Nagios a failure's 1 is a warning."""
        try:
            with usage_is_unknown():
                return super().invoke(ctx)
        except Usage:
            raise
        except (click.ClickException, Error, OSError) as error:
            report = Report((ctx.invoked_subcommand or "check").upper(), "it cannot be checked")
            report.complain(Level.UNKNOWN, str(error))
            click.echo(report.line)
            ctx.exit(report.worst)


@contextmanager
def usage_is_unknown() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        raise Usage(error.format_message(), error.ctx) from None


class Report:
    """What the stages of a check found."""

    def __init__(self, service: str, subject: str) -> None:
        self.service = service
        self.subject = subject
        self.worst = Level.OK
        self.worst_stage: str | None = None
        self.stage = ""
        self._facts: list[str] = []
        self._complaints: list[str] = []
        self._numbers: dict[str, tuple[int, str]] = {}

    def number(self, name: str, value: int, limits: str = ";;") -> None:
        """A figure with "warning;critical;minimum", in the format of the plug-in guidelines."""
        self._numbers[name] = (value, limits)

    def fact(self, text: str) -> None:
        self._facts.append(text)

    def complain(self, level: Level, text: str) -> None:
        """Report a problem.  UNKNOWN never hides a known problem."""
        self._complaints.append(text)
        if self.worst is Level.OK or Level.UNKNOWN > level > self.worst:
            self.worst, self.worst_stage = level, self.stage

    @property
    def text(self) -> str:
        return f"{self.subject}: " + ", ".join(self._complaints + self._facts)

    @property
    def line(self) -> str:
        numbers = self._numbers.items()
        performance = " ".join(f"{name}={v}{limits}".rstrip(";") for name, (v, limits) in numbers)
        # the bar separates the figures, so a name must not contain one
        text = visible(f"{self.service} {self.worst.name} - {self.text}").replace("|", "/")
        return f"{text} | {performance}" if performance else text

    def fields(self) -> dict[str, object]:
        return {
            "level": self.worst.name.lower(),
            "stage": self.worst_stage,
            "text": self.text,
            "numbers": {name: value for name, (value, _) in self._numbers.items()},
        }


@contextmanager
def reporting(report: Report, as_json: bool) -> Iterator[None]:
    """Print what was found, also if a stage failed."""
    try:
        yield
    except NotFound as error:
        report.complain(Level.CRITICAL, str(error))
    except (click.ClickException, Error, OSError) as error:
        report.complain(Level.UNKNOWN, f"{report.stage}: {error}")
    if as_json:
        print_json(report.fields())
    else:
        click.echo(report.line)
    click.get_current_context().exit(report.worst)


@click.group(
    cls=CheckGroup,
    no_args_is_help=False,  # help would exit with 2, which is critical
    examples="""
    shmbroker check vhost
    shmbroker check queue orders --depth-warning 100 --depth-critical 1000 --consumers-min 1
    shmbroker check alive /var/lib/shmbroker/orders
    """,
)
def check() -> None:
    """Check a broker, a cluster, a vhost or a queue, for Nagios.

    `alive`, `ready` and `standby` are three questions: a passive broker is alive, not ready, and
    ready to take over once it is in sync.

    Exit codes: 0 ok, 1 warning, 2 critical, 3 unknown.
    """


@check.command(
    "vhost",
    examples="""
    shmbroker check vhost
    shmbroker check vhost --vhost trading --free-warning 1GiB --errors-within 1h
    """,
)
@click.option("--free-warning", type=SIZE, default="64MiB", show_default=True,
    help="Warn if /dev/shm has less free memory than this.")  # fmt: skip
@click.option("--free-critical", type=SIZE, default="16MiB", show_default=True,
    help="Less free memory than this is critical.")  # fmt: skip
@click.option("--errors-within", type=DURATION, default="10m", show_default=True,
    help="Warn of errors that are not older than this.")  # fmt: skip
@json_option
@vhost_option
def check_vhost(
    free_warning: int, free_critical: int, errors_within: float, as_json: bool, vhost: str
) -> None:
    """Check a vhost.

    Checks the free memory in /dev/shm, that the vhost can be opened, that no participant is dead,
    that there are no recent errors, that a broker runs for each queue that needs one, and that no
    queue has messages set aside because their dead-letter or expiry queue is full.
    """
    report = Report("VHOST", vhost)
    with reporting(report, as_json):
        report.stage = "memory"
        check_memory(report, free_warning, free_critical)
        report.stage = "connect"
        with observed(vhost) as broker:
            report.stage = "participants"
            others = [p for p in broker.participants() if p.id != broker.participant]
            dead = sum(p.state == "dead" for p in others)
            if dead:
                report.complain(Level.WARNING, f"{dead} of {len(others)} participants are dead")
            report.stage = "errors"
            since = time.time_ns() - int(errors_within * 1e9)
            fresh = [e for e in broker.errors() if e.last_at >= since]
            if fresh:
                within = format_duration(errors_within)
                report.complain(Level.WARNING, f"within {within}: {fresh[0].text}")
            report.stage = "queues"
            queues = broker.queues()
            complain_of_writers(report, without_writer(broker))
            aside = list(of_vhost(broker))
            for each in aside:
                report.complain(Level.WARNING, f"queue {each.queue}: {each.problem}")
        report.fact(format_count(len(queues), "queue"))
        report.fact(format_count(len(others), "participant"))
        report.number("queues", len(queues))
        report.number("depth", sum(queue.depth for queue in queues))
        report.number("participants", len(others))
        report.number("dead", dead)
        report.number("errors", len(fresh))
        report.number("set_aside", sum(each.count for each in aside))


def complain_of_writers(report: Report, found: dict[str, str]) -> None:
    """One complaint for each problem, with a few of the queues that have it."""
    for problem in sorted(set(found.values())):
        names = [repr(name) for name, its in found.items() if its == problem]
        more = f" and {len(names) - NAMES_MAX:,} others" if len(names) > NAMES_MAX else ""
        queues = "queue" if len(names) == 1 else "queues"
        report.complain(Level.CRITICAL, f"{queues} {', '.join(names[:NAMES_MAX])}{more}: {problem}")


def check_memory(report: Report, warning: int, critical: int) -> None:
    room = os.statvfs("/dev/shm")
    free = room.f_bavail * room.f_frsize
    report.number("free", free, f"B;{warning}:;{critical}:;0")
    level = Level.CRITICAL if free < critical else Level.WARNING if free < warning else Level.OK
    if level:
        report.complain(level, f"/dev/shm has {format_size(free)} left")


@check.command("alive", examples="shmbroker check alive /var/lib/shmbroker/orders")
@folder_argument
@click.option("--hangs-after", type=DURATION, default="10s", show_default=True,
    help="A live whose journal writer stands still for this long is critical.")  # fmt: skip
@json_option
def check_alive(folder: Path, hangs_after: float, as_json: bool) -> None:
    """Check whether the process of the broker in DIR is sane, whatever its state is.

    It runs, is not stopped, and the journal writer of a live works.  A passive broker is alive.
    A supervisor may restart a broker because of this check.
    """
    from shmbroker.ipc.instance import beat, process, status
    from shmbroker.ipc.instance.config import config

    report = Report("ALIVE", str(folder))
    with reporting(report, as_json):
        report.stage = "process"
        configured, found = config.load(folder), status.read(folder)
        if found.process is None:
            why = f": {found.why}" if found.why else ""
            report.complain(Level.CRITICAL, f"it is {found.state}{why}")
            return
        if process.stands_still(found.process.pid):
            report.complain(Level.CRITICAL, "its process is stopped: kill -CONT goes on")
        report.stage = "journal"
        age = beat.age_of(configured.vhost, found.epoch) if found.state == "live" else None
        if age is not None and age > hangs_after:
            hangs = format_duration(round(age))
            report.complain(Level.CRITICAL, f"its journal writer has stood still for {hangs}")
        report.fact(found.state)
        report.number("epoch", found.epoch)


@check.command("ready", examples="shmbroker check ready /var/lib/shmbroker/orders")
@folder_argument
@json_option
def check_ready(folder: Path, as_json: bool) -> None:
    """Check whether the broker in DIR serves clients now.

    A passive broker is critical here, and it is as it should be: a supervisor that restarts a
    broker because of this check is misconfigured.  Use `check alive` for that.
    """
    from shmbroker.cli import pairing
    from shmbroker.ipc.instance import process, status
    from shmbroker.ipc.instance.config import config

    report = Report("READY", str(folder))
    with reporting(report, as_json):
        report.stage = "status"
        policy, found = config.load(folder).policy, status.read(folder)
        is_stopped = found.process is not None and process.stands_still(found.process.pid)
        if is_stopped:
            report.complain(Level.CRITICAL, "its process is stopped")
        elif found.state != "live":
            report.complain(Level.CRITICAL, f"it is {found.state}: do not restart it for that")
        elif policy == "pair" and (state := pairing.shown(folder, found).get("pair")) != "active":
            report.complain(Level.CRITICAL, f"it is {state}: do not restart it for that")
        elif found.replication.startswith("suspended"):
            report.complain(Level.CRITICAL, f"it confirms nothing: it is {found.replication}")
        elif found.replication == "alone":
            report.complain(Level.WARNING, "it is alone: no replica is in sync")
        report.fact(found.state)
        report.number("epoch", found.epoch)


@check.command("standby", examples="shmbroker check standby /var/lib/shmbroker/backup")
@folder_argument
@json_option
def check_standby(folder: Path, as_json: bool) -> None:
    """Check whether the broker in DIR could take over now.

    A passive member of a replicated node is ok once it is in sync, and a broker of a pair once it
    knows that the other one is active.  A live is ok, too: it serves.
    Do not restart a broker because of this check.
    """
    from shmbroker.cli import pairing
    from shmbroker.cli.ha import could_take_over
    from shmbroker.ipc.instance import process, status
    from shmbroker.ipc.instance.config import config

    report = Report("STANDBY", str(folder))
    with reporting(report, as_json):
        report.stage = "status"
        policy = config.load(folder).policy
        found = status.read(folder)
        if found.process is None:
            why = f"it is {found.state}"
        elif process.stands_still(found.process.pid):
            why = "its process is stopped"
        elif policy == "pair":
            why = pairing.could_take_over(folder, found)
        elif policy != "replication":
            why = "" if found.is_announced or found.state == "live" else f"it is {found.state}"
        else:
            why = "" if found.state == "live" else could_take_over(found)
        if why:
            report.complain(Level.CRITICAL, why)
        else:
            report.fact(found.state)
        report.number("epoch", found.epoch)


@check.command("cluster", examples="shmbroker check cluster /var/lib/shmbroker/east")
@folder_argument
@json_option
def check_cluster(folder: Path, as_json: bool) -> None:
    """Check a cluster, as the broker in DIR knows it.

    Warns of nodes that are missing, or further than messages go, of nodes of several members
    without a backup, and of a store that runs twice.  Critical: so few lives are there that a vote
    could not succeed now.
    """
    from shmbroker.cli.cluster import known, quorum

    report = Report("CLUSTER", str(folder))
    with reporting(report, as_json):
        report.stage = "status"
        told = known(folder)
        if not told:
            report.complain(Level.CRITICAL, "the broker does not run, or is not live yet")
            return
        nodes = told["nodes"]
        report.stage = "nodes"
        missing = [each["name"] for each in nodes if each["state"] == "missing"]
        if missing:
            report.complain(Level.WARNING, f"missing: {', '.join(missing)}")
        far = [each["name"] for each in nodes if each["state"] == "too far"]
        if far:
            report.complain(Level.WARNING, f"too far: {', '.join(far)} (max-hops)")
        for each in told["duplicates"]:
            report.complain(Level.WARNING, f"{each['name']} at {each['address']} is a copied store")
        for each in nodes:
            if len(each["group"]) > 1 and not each["backups"] and each["state"] != "missing":
                report.complain(Level.WARNING, f"{each['name']} has no backup")
        report.stage = "votes"
        if not told["can-vote"]:
            report.complain(Level.CRITICAL, f"no vote could succeed now ({quorum(told)})")
        report.fact(format_count(len(nodes), "node"))
        report.number("nodes", len(nodes))
        report.number("missing", len(missing))


@check.command(
    "queue",
    examples="""
    shmbroker check queue orders --depth-warning 100 --depth-critical 1000
    shmbroker check queue orders --consumers-min 1
    shmbroker check queue orders --depth-critical 1000 --url tcp://orders.example
    """,
)
@click.argument("name", shell_complete=queue_names)
@click.option(
    "--depth-warning",
    metavar="N",
    type=click.IntRange(min=0),
    help="Warn if the queue holds more messages.",
)
@click.option(
    "--depth-critical",
    metavar="N",
    type=click.IntRange(min=0),
    help="More messages than this are critical.",
)
@click.option("--consumers-min", metavar="N", type=click.IntRange(min=0), default=0,
    help="Fewer consumers than this are critical.")  # fmt: skip
@json_option
@vhost_option
def check_queue(
    name: str, depth_warning: int | None, depth_critical: int | None, consumers_min: int,
    as_json: bool, vhost: str,
) -> None:  # fmt: skip
    """Check a queue.

    Checks that the queue exists and is not paused, that a broker runs if it needs one (it is
    durable, pages, or has scheduled messages), its depth, its number of consumers, and that no
    message is set aside.  With --url, a broker that cannot be reached is unknown.
    """
    report = Report("QUEUE", name)
    with reporting(report, as_json):
        report.stage = "connect"
        with observed(vhost) as broker:
            report.stage = "queue"
            queue_named(broker, name)
            found = next((queue for queue in broker.queues() if queue.name == name), None)
            if found is None:
                raise NotFound(f"queue {name!r} was deleted just now")
            aside = of_queue(broker, name)
            writer_problem = critical_queues(broker).get(name)
        if writer_problem:
            report.complain(Level.CRITICAL, writer_problem)
        if found.paused:
            report.complain(Level.WARNING, "it is paused")
        if aside:
            report.complain(Level.WARNING, aside.problem)
        report.stage = "depth"
        depth = f"depth {found.depth:,}"
        if depth_critical is not None and found.depth > depth_critical:
            report.complain(Level.CRITICAL, f"{depth}, more than {depth_critical:,}")
        elif depth_warning is not None and found.depth > depth_warning:
            report.complain(Level.WARNING, f"{depth}, more than {depth_warning:,}")
        else:
            report.fact(depth)
        report.stage = "consumers"
        consumers = format_count(found.consumers, "consumer")
        if found.consumers < consumers_min:
            report.complain(Level.CRITICAL, f"{consumers}, fewer than {consumers_min}")
        else:
            report.fact(consumers)
        report.number("depth", found.depth, f";{limit(depth_warning)};{limit(depth_critical)};0")
        least = f"{consumers_min}:" if consumers_min else ""
        report.number("consumers", found.consumers, f";;{least};0")
        report.number("set_aside", aside.count if aside else 0)


def limit(most: int | None) -> str:
    return "" if most is None else str(most)
