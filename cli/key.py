"""`shmbroker key`: the key pair of a broker, and the keys of others that it trusts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.output import json_option, print_json, print_table, say

if TYPE_CHECKING:
    from shmbroker.netbridge.config.config import Network

ROLES = ("client", "cluster", "replica", "peering", "witness", "admin", "viewer")


@click.group(
    cls=Group,
    examples="""
    shmbroker key create /var/lib/shmbroker/orders
    shmbroker key show /var/lib/shmbroker/orders
    """,
)
def key() -> None:
    """Key pairs that pin a broker in addition to its credentials."""


def network_of(folder: Path) -> Network:
    from shmbroker.netbridge.config import config

    return config.load(folder)[1]


def key_file(folder: Path) -> Path:
    found = network_of(folder).key_file
    if found is None:
        raise click.ClickException(
            f'{folder} has no security.key-file: set it, as in key-file = "broker.key"'
        )
    return found


@key.command(examples="shmbroker key create /var/lib/shmbroker/orders")
@folder_argument
def create(folder: Path) -> None:
    """Make the key pair of the broker in DIR.

    The secret key is written into security.key-file, which only this user can read.  The public
    key is printed: others pin the broker by it, as in tcp://host:61616?key=...
    """
    from shmbroker.netbridge.security import key_file as files

    place = key_file(folder)
    click.echo(files.create(place).public.hex())
    say(f"the secret key is in {place}")


@key.command(
    examples="""
    shmbroker key show /var/lib/shmbroker/orders
    shmbroker key show orders --json | jq -r .public
    """
)
@folder_argument
@json_option
def show(folder: Path, as_json: bool) -> None:
    """Print the public keys of the broker in DIR, and the keys that it trusts.

    First that of security.key-file, then those of its acceptors.  KEY OF says whose password gives
    the key.  Every other user needs it in the address: tcp://host:61616?key=...
    """
    from shmbroker.netbridge.config.acceptor_key import acceptor_keys
    from shmbroker.netbridge.security import key_file as files

    network = network_of(folder)
    public = files.read(network.key_file).public.hex() if network.key_file else None
    known = files.known(network.known_keys) if network.known_keys else ()
    accepting = acceptor_keys(network)
    if as_json:
        trusted = [
            {"key": each.public.hex(), "roles": [role.value for role in each.roles],
             "name": each.name} for each in known
        ]  # fmt: skip
        acceptors = [
            {"name": each.name, "uri": each.uri, "credentials": each.credentials,
             "key": each.public} for each in accepting
        ]  # fmt: skip
        print_json({"public": public, "known": trusted, "acceptors": acceptors})
        return
    if public or not accepting:
        click.echo(public or "-")
    if accepting:
        print_table(
            ["ACCEPTOR", "ADDRESS", "KEY OF", "PUBLIC KEY"],
            [[each.name, each.uri, each.credentials, each.public] for each in accepting],
        )
    for each in known:
        click.echo(each.line, nl=False)


@key.command(examples="shmbroker key trust orders 3f8a... --role client --name 'night batch'")
@folder_argument
@click.argument("public", metavar="KEY")
@click.option("--role", "roles", type=click.Choice(ROLES), multiple=True, default=["client"],
    show_default=True, help="What its links may be for.  May be repeated.")  # fmt: skip
@click.option("--name", default="", help="Whose key it is, for people.")
def trust(folder: Path, public: str, roles: tuple[str, ...], name: str) -> None:
    """Trust a public key: add it to security.known-keys of the broker in DIR."""
    from shmbroker.netbridge.security import key_file as files
    from shmbroker.netbridge.security.option import roles_of

    place = network_of(folder).known_keys
    if place is None:
        raise click.ClickException(
            f'{folder} has no security.known-keys: set it, as in known-keys = "known.keys"'
        )
    known = files.KnownKey(files.public_key(public), roles_of(list(roles)), name)
    files.trust(place, known)
    say(f"{public} may have links for {', '.join(roles)}; it stands in {place}")
