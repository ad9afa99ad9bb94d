"""`shmbroker link`: the links of a broker, seen and ordered."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import click

from shmbroker.cli.connection import (
    is_over_link,
    observed,
    operating,
    ordered_far,
    vhost_option,
)
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

NAP_SECONDS = 0.02
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

    It reads shared memory, so it works as well if the broker hangs; with --url the broker is asked.
    LAG is the number of messages that the far end has not confirmed.
    """
    shown(found(vhost), COLUMNS, cells, as_json, names)


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


def found(vhost: str) -> list[dict[str, object]]:
    """In the memory of this host, or as the broker on another one says."""
    from shmbroker.netbridge.broker import links

    if not is_over_link():
        return links.fields_of(links.rows(vhost), vhost)
    with observed(vhost) as broker:
        return ordered_far(broker, "show", noun=links.LINKS)


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
    from shmbroker.netbridge.broker.links import LINKS, rows

    ends_at = time.monotonic() + timeout
    if is_over_link():
        with operating() as broker:
            ordered_far(broker, verb, noun=LINKS, name=name)
            show = partial(ordered_far, broker, "show", noun=LINKS)
            _wait(name, states, timeout, ends_at, show)
    else:
        _ordered_here(verb, name, vhost, timeout)
        _wait(name, states, timeout, ends_at, lambda: [dict(each.text) for each in rows(vhost)])


def _ordered_here(verb: str, name: str, vhost: str, timeout: float) -> None:
    from shmbroker.ipc.instance import ordering
    from shmbroker.netbridge.broker.table import read

    table = read(vhost)
    if table is None:
        raise click.ClickException(f"vhost {vhost!r} has no broker with links")
    answer = ordering.asked(table.folder, {"verb": verb, "name": name}, timeout)
    if answer is None:
        raise click.ClickException(f"{table.folder} has not answered in {timeout:g} s")
    if "why" in answer:
        raise click.ClickException(str(answer["why"]))


def _wait(
    name: str, states: tuple[str, ...], timeout: float, ends_at: float,
    show: Callable[[], list[dict[str, object]]],
) -> None:  # fmt: skip
    while not any(each.get("name") == name and each.get("state") in states for each in show()):
        if time.monotonic() >= ends_at:
            raise click.ClickException(f"link {name!r} has not ended in {timeout:g} s")
        time.sleep(NAP_SECONDS)


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
