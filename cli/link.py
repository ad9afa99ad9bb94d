"""`shmbroker link`: the links of a broker, seen and ordered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import SHARED, vhost_option
from shmbroker.cli.group import Group
from shmbroker.cli.output import (
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
    say,
)
from shmbroker.cli.units import DURATION, format_duration

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.netbridge.broker.table import Seen

PERCENTILES = (50, 99, 99.9)
COLUMNS = ["LINK", "STATE", "SINCE", "PEER", "MEMBER", "SENT", "LAG", "P99", "ATTEMPTS", "REASON"]


@click.group(
    cls=Group,
    examples="""
    shmbroker link list --vhost orders
    shmbroker link stop to-berlin --vhost orders
    """,
)
def link() -> None:
    """The links of a broker to others."""


@link.command(
    "list",
    examples="""
    shmbroker link list
    shmbroker link list --vhost orders --json | jq -r '.[] | select(.state != "up") | .name'
    """,
)
@json_option
@names_option
@vhost_option
def list_(vhost: str, as_json: bool, names: bool) -> None:
    """Show the links of the broker that is live for a vhost, as they are now.

    It reads shared memory, so it works as well if the broker hangs.  LAG is the number of messages
    that the far end has not confirmed.
    """
    shown(fields_of(rows(vhost), vhost), COLUMNS, cells, as_json, names)


def shown(
    found: list[dict[str, object]],
    columns: list[str],
    cells_of: Callable[[dict[str, object]], list[object]],
    as_json: bool,
    names: bool,
) -> None:
    if names:
        print_names(str(each["name"]) for each in found)
    elif as_json:
        print_json(found)
    else:
        print_table(columns, [cells_of(each) for each in found])


def rows(vhost: str) -> tuple[Seen, ...]:
    from shmbroker.netbridge.broker.table import read

    table = read(vhost)
    return table.rows if table is not None else ()


def fields_of(found: Iterable[Seen], vhost: str) -> list[dict[str, object]]:
    from shmbroker.ipc.base.errors import Error
    from shmbroker.ipc.connection.broker import connect

    with ExitStack() as opened:
        broker = None
        with suppress(Error):  # a vhost that is damaged
            broker = opened.enter_context(connect(f"{SHARED}{vhost}", observe=True))
        return [fields(each, broker) for each in found]


def fields(seen: Seen, broker: Broker | None) -> dict[str, object]:
    from shmbroker.netbridge.broker.waiting import waiting

    text, histogram = dict(seen.text), seen.histogram
    began = text.pop("since", None)
    lag, oldest = waiting(broker, str(text.get("queue", "")))
    return {
        **text,
        "since": datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds")
        if began
        else None,
        "seconds": round(time.time() - began, 3) if began else None,
        "lag": lag,
        "oldest_seconds": oldest,
        **seen.counters,
        "append_confirm_ns": {
            **{f"p{percent:g}": histogram.percentile(percent) for percent in PERCENTILES},
            "max": histogram.maximum,
            "messages": histogram.total,
        },
    }


def cells(of: dict[str, object]) -> list[object]:
    times = of["append_confirm_ns"]
    assert isinstance(times, dict)
    p99 = format_duration(times["p99"] / 1e9) if times["messages"] else None
    return [of.get("name"), of.get("state"), since(of), of.get("peer"), of.get("member"),
            of["messages"], of["lag"], p99, of["attempts"], of.get("reason")]  # fmt: skip


def since(of: dict[str, object]) -> str | None:
    """For how long it has been what it is."""
    seconds = of["seconds"]
    return format_duration(round(seconds)) if isinstance(seconds, float) else None


def ordered(verb: str, name: str, vhost: str, timeout: float, states: tuple[str, ...]) -> None:
    from shmbroker.ipc.instance import ordering
    from shmbroker.netbridge.broker.table import read

    table = read(vhost)
    if table is None:
        raise click.ClickException(f"vhost {vhost!r} has no broker with links")
    ends_at = time.monotonic() + timeout
    answer = ordering.asked(table.folder, {"verb": verb, "name": name}, timeout)
    if answer is None:
        raise click.ClickException(f"{table.folder} has not answered in {timeout:g} s")
    if "why" in answer:
        raise click.ClickException(str(answer["why"]))
    while not any(
        each.text.get("name") == name and each.text.get("state") in states for each in rows(vhost)
    ):
        if time.monotonic() >= ends_at:
            raise click.ClickException(f"link {name!r} has not ended in {timeout:g} s")
        time.sleep(0.01)


timeout_option = click.option(
    "--timeout", type=DURATION, default="70s", show_default=True, help="Wait at most this long."
)


@link.command(examples="shmbroker link stop to-berlin --vhost orders")
@click.argument("name")
@timeout_option
@vhost_option
def stop(name: str, timeout: float, vhost: str) -> None:
    """Stop a link until it is started, or the broker is.

    What is on its way is confirmed first.  The queue goes on taking messages.
    """
    ordered("stop", name, vhost, timeout, ("stopped",))
    say(f"link {name} is stopped")


@link.command(examples="shmbroker link start to-berlin --vhost orders")
@click.argument("name")
@timeout_option
@vhost_option
def start(name: str, timeout: float, vhost: str) -> None:
    """Start a link that was stopped, refused, or has no member left to try."""
    ordered("start", name, vhost, timeout, ALIVE)
    say(f"link {name} is started")


ALIVE = ("connecting", "handshaking", "syncing", "up", "lost", "backoff", "unreachable",
         "peer-passive", "refused", "failed")  # fmt: skip
