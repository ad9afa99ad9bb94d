"""`shmbroker user`: who may log in to a broker, over links and at its console."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from shmbroker.cli.connection import broker_options, chosen_broker, operating
from shmbroker.cli.group import Group, Verb
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.key import ROLES
from shmbroker.cli.output import (
    confirm,
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
    say,
    secret_line,
    yes_option,
)

if TYPE_CHECKING:
    from shmbroker.cli.users import Changes
    from shmbroker.netbridge.config.acceptor_key import AcceptorKey

NAMES_BROKER = ("--url", "--broker", "--context", "-b")
Function = TypeVar("Function", bound=Callable[..., object])


class OfUsers(Verb):
    """Without DIR, if the broker is named by an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = any(
            each.partition("=")[0] in NAMES_BROKER or (each[:2] == "-b" and each[:3] != "-b-")
            for each in args
        )
        return super().parse_args(ctx, ["", *args] if is_named else args)


def of_broker(function: Function) -> Function:
    """DIR, or the options that name a broker."""
    return folder_argument(broker_options(function))


roles_option = click.option(
    "--role", "roles", type=click.Choice(ROLES), multiple=True,
    help="What its links and its sessions may be for.  May be repeated.",
)  # fmt: skip
console_option = click.option(
    "--console/--no-console",
    "logs_in",
    default=None,
    help="Whether it may log in at the console.  [yes for admin and viewer]",
)
name_argument = click.argument("name", metavar="NAME")


@click.group(
    cls=Group,
    examples="""
    shmbroker user list /var/lib/shmbroker/orders
    pass show orders/olga | shmbroker user add orders olga --role admin
    shmbroker user list --url tcp://orders.example
    """,
)
def user() -> None:
    """Users of a broker: who may log in, and as what.

    They are [credentials.NAME] of DIR/shmbroker.toml.  A broker that runs reads each change at
    once; if it refuses one, nothing is changed.  With --url, or --broker, or --context, there is no
    DIR: the broker is asked, by a user who has the role admin, who cannot change himself so.
    """


@user.command(
    "list",
    cls=OfUsers,
    examples="""
    shmbroker user list orders
    shmbroker user list orders --json | jq -r '.[] | select(.console) | .name'
    """,
)
@of_broker
@json_option
@names_option
def list_(folder: Path, as_json: bool, names: bool) -> None:
    """List the users of the broker in DIR; never their passwords.

    PASSWORD says where it is kept: in a file, the environment, masked, or plain in shmbroker.toml.
    """
    with _users(folder) as users:
        found = users.listed()
    if as_json:
        print_json([each.fields for each in found])
    elif names:
        print_names(each.name for each in found)
    else:
        print_table(
            ["NAME", "USER", "ROLES", "CONSOLE", "PASSWORD", "ALSO ACCEPTED"],
            [
                [each.name, each.user, ", ".join(each.roles), each.logs_in, each.kept, each.also]
                for each in found
            ],
        )


@user.command(
    cls=OfUsers,
    examples="""
    shmbroker user add orders olga --role admin
    pass show orders/shop | shmbroker user add orders shop --role client
    """
)
@of_broker
@name_argument
@roles_option
@console_option
@click.option("--user", "login", metavar="USER", help="By which it logs in.  [NAME]")
def add(
    folder: Path, name: str, roles: tuple[str, ...], logs_in: bool | None, login: str | None
) -> None:
    """Add a user to the broker in DIR.

    The command prompts for the password or reads it from standard input, and keeps it in
    DIR/NAME.password, which only the user of the broker may read.  If the key of an acceptor comes
    from another user's password, it prints the key: the address of this user needs it, as in
    tcp://host:61616?key=...
    """
    from shmbroker.netbridge.config.users import Change

    change = Change(roles or ("client",), logs_in, _password())
    with _users(folder) as users:
        _warn(users.add(name, login, change))
    say(f"{name} may log in")
    here = _folder(folder)
    for each in [] if here is None else _keys_of_others(here, name):
        say(f"its address needs the key of acceptor {each.name}: {_pinned(each)}")


@user.command(
    cls=OfUsers,
    examples="""
    shmbroker user change orders olga --role viewer
    shmbroker user change orders shop --no-console
    """
)
@of_broker
@name_argument
@roles_option
@console_option
def change(folder: Path, name: str, roles: tuple[str, ...], logs_in: bool | None) -> None:
    """Give a user other roles; they take the place of those that it has.

    Its links and its sessions at the console end.  The last admin of the console stays one.
    """
    from shmbroker.netbridge.config.users import Change

    if not roles and logs_in is None:
        raise click.UsageError("say --role, --console or --no-console")
    with _users(folder) as users:
        users.change(name, Change(roles or None, logs_in))
    say(f"{name} is changed")


@user.command(cls=OfUsers, examples="pass show orders/olga | shmbroker user password orders olga")
@of_broker
@name_argument
def password(folder: Path, name: str) -> None:
    """Give a user another password, from a prompt or from standard input.

    Its links and its sessions at the console end.  So that programs can go over one by one, let
    both passwords be accepted for a while: accept-also in docs/links.md.
    """
    from shmbroker.netbridge.config.users import Change

    change = Change(password=_password())
    with _users(folder) as users:
        _warn(users.change(name, change))
    say(f"the password of {name} is changed")


@user.command(cls=OfUsers, examples="shmbroker user remove orders olga --yes")
@of_broker
@name_argument
@yes_option
def remove(folder: Path, name: str, yes: bool) -> None:
    """Remove a user, and its password.

    Its links and its sessions end.  The last admin of the console stays.
    """
    confirm(yes, f"remove user {name} of {_place(folder)}")
    with _users(folder) as users:
        users.remove(name)
    say(f"{name} is removed")


@contextmanager
def _users(folder: Path) -> Iterator[Changes]:
    from shmbroker.cli.users import Far, Here

    here = _folder(folder)
    if here is None:
        with operating() as broker:
            yield Far(broker)
    else:
        yield Here(here)


def _folder(given: Path) -> Path | None:
    """None: it is reached over TCP."""
    far = chosen_broker()
    if far is None:
        return given
    return None if far.url else far.folder or given


def _place(folder: Path) -> str:
    far = chosen_broker()
    return str(folder if far is None else far.url or far.folder)


def _keys_of_others(folder: Path, name: str) -> list[AcceptorKey]:
    from shmbroker.netbridge.config import config
    from shmbroker.netbridge.config.acceptor_key import acceptor_keys

    network = config.load(folder)[1]
    found = acceptor_keys(network, network.logins[name].roles)
    return [each for each in found if each.credentials != name]


def _pinned(key: AcceptorKey) -> str:
    return f"{key.uri}{'&' if '?' in key.uri else '?'}key={key.public}"


def _password() -> str:
    if sys.stdin.isatty():
        found: str = click.prompt("password", hide_input=True, confirmation_prompt=True, err=True)
        return found
    return secret_line()


def _warn(warning: str | None) -> None:
    if warning is not None:
        say(f"warning: {warning}")


