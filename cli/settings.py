"""`shmbroker settings`: settings of queues by pattern of their names."""

from __future__ import annotations

from typing import Any

import click

from shmbroker.cli.connection import connected, observed, vhost_option
from shmbroker.cli.group import Group
from shmbroker.cli.output import (
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
    say,
)
from shmbroker.cli.setting import given, setting_options


@click.group(
    cls=Group,
    examples="""
    shmbroker settings set 'orders.#' --max-deliveries 3 --dead-letter orders.dead
    shmbroker settings list
    shmbroker queue explain orders.eu
    """,
)
def settings() -> None:
    """Settings by pattern, for queues that are declared later."""


@settings.command(
    "set",
    examples="""
    shmbroker settings set 'orders.#' --max-deliveries 3 --dead-letter orders.dead
    shmbroker settings set 'session.*' --auto-create --auto-delete --auto-delete-delay 10m
    """,
)
@click.argument("pattern")
@setting_options(of_patterns=True)
@vhost_option
def set_(pattern: str, vhost: str, **options: Any) -> None:
    """Set the settings of queues whose names match PATTERN.

    Replaces the settings that PATTERN had.  A pattern is words separated by dots; * matches one
    word, # any number of words.  Existing queues keep their settings.  The value `none` overrides a
    more general pattern.
    """
    with connected(vhost) as broker:
        broker.settings(pattern, **given(options))
    say(f"queues {pattern!r} that are declared from now on have {words(given(options))}")


def words(found: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in found.items()) or "nothing of their own"


@settings.command(
    "list",
    examples="""
    shmbroker settings list
    shmbroker settings list --json | jq '.[].pattern'
    """,
)
@json_option
@names_option
@vhost_option
def list_(as_json: bool, names: bool, vhost: str) -> None:
    """List all patterns."""
    with observed(vhost) as broker:
        found = broker.patterns()
    if as_json:
        print_json([{"pattern": p.pattern, "settings": p.settings} for p in found])
    elif names:
        print_names(p.pattern for p in found)
    else:
        print_table(["PATTERN", "SETTINGS"], [[p.pattern, words(p.settings)] for p in found])


@settings.command(examples="shmbroker settings remove 'orders.#'")
@click.argument("pattern")
@vhost_option
def remove(pattern: str, vhost: str) -> None:
    """Remove a pattern.  Existing queues keep the settings that they got from it."""
    with connected(vhost) as broker:
        broker.remove_settings(pattern)
    say(f"pattern {pattern!r} is removed")
