"""`shmbroker vhost`: create, list and delete vhosts."""

from __future__ import annotations

import os

import click

from shmbroker.cli.connection import vhost_names
from shmbroker.cli.group import Group
from shmbroker.cli.output import (
    confirm,
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
    say,
    yes_option,
)  # fmt: skip
from shmbroker.cli.suggestion import suggesting
from shmbroker.cli.units import SIZE, format_size


@click.group(
    cls=Group,
    examples="""
    shmbroker vhost create default
    shmbroker vhost list
    """,
)
def vhost() -> None:
    """Vhosts, which are namespaces of queues and exchanges."""


@vhost.command(
    examples="""
    shmbroker vhost create default
    shmbroker vhost create big --arena 4GiB
    shmbroker vhost create orders --group orders --mode 0660
    """
)
@click.argument("name")
@click.option(
    "--arena", type=SIZE, default="256MiB", show_default=True,
    help="Memory for messages.  It is allocated as it fills.",
)  # fmt: skip
@click.option(
    "--group", metavar="GROUP",
    help="Users of this group may use it too, by name or number.  [none]",
)  # fmt: skip
@click.option(
    "--mode", type=click.Choice(["0600", "0660"]),
    help="0600: this user only.  0660: a group, by default this user's own.  [0660 with --group]",
)  # fmt: skip
def create(name: str, arena: int, group: str | None, mode: str | None) -> None:
    """Create a vhost.

    Only the user who creates it may use it, or with --group all users of that group.
    """
    from shmbroker.ipc.vhost import vhost as vhosts

    octal = None if mode is None else int(mode, 8)
    vhosts.create(name, arena_bytes=arena, group=group, mode=octal)
    shared = f", for group {group or os.getegid()}" if group or mode == "0660" else ""
    say(f"vhost {name!r}, with room for {format_size(arena)} of messages{shared}")


@vhost.command(
    "list",
    examples="""
    shmbroker vhost list
    shmbroker vhost list --names | xargs -n1 shmbroker queue list --vhost
    """,
)
@json_option
@names_option
def list_(as_json: bool, names: bool) -> None:
    """List the vhosts of this host."""
    from shmbroker.ipc.vhost import vhost as vhosts

    found = vhosts.names()
    if as_json:
        print_json([{"name": name} for name in found])
    elif names:
        print_names(found)
    else:
        print_table(["NAME"], [[name] for name in found])


@vhost.command(examples="shmbroker vhost delete scratch --yes")
@click.argument("name", shell_complete=vhost_names)
@click.option("--force", is_flag=True, help="Delete it even if a participant is connected.")
@yes_option
def delete(name: str, force: bool, yes: bool) -> None:
    """Delete a vhost with its queues and messages."""
    from shmbroker.ipc.vhost import vhost as vhosts

    confirm(yes, f"delete vhost {name!r} with all its queues and messages")
    with suggesting("vhost", name, vhosts.names, f"shmbroker vhost create {name}"):
        vhosts.delete(name, force=force)
    say(f"vhost {name!r} is deleted")
