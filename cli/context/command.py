"""`shmbroker context`: brokers by name, so that commands need no address and no password."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import check_url
from shmbroker.cli.context.names import context_names
from shmbroker.cli.group import Group
from shmbroker.cli.output import (
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
    say,
)

if TYPE_CHECKING:
    from shmbroker.cli.context.contexts import Context
    from shmbroker.ipc.instance.config.secret import Secret


@click.group(
    cls=Group,
    examples="""
    shmbroker context list
    shmbroker context add market tcp://market:61616 --user programs --password-file market.password
    shmbroker context use market
    """,
)
def context() -> None:
    """Brokers by name, with where their passwords are.

    They are in ~/.config/shmbroker/contexts.toml, which only this user may read.  `shmbroker
    create` adds one for each instance.  --context NAME takes a broker from there, and --url finds
    user and password of its address there.
    """


name_argument = click.argument("name", shell_complete=context_names)


@context.command(
    "list",
    examples="""
    shmbroker context list
    shmbroker context list --json | jq -r '.[] | select(.current) | .url'
    """,
)
@json_option
@names_option
def list_(as_json: bool, names: bool) -> None:
    """List the contexts.  Passwords are not shown, only where they are."""
    from shmbroker.cli.context import contexts

    found = contexts.read()
    rows = [fields(each, is_current=each.name == found.current) for each in found.by_name.values()]
    if as_json:
        print_json(rows)
    elif names:
        print_names(found.by_name)
    else:
        headers = ["NAME", "CURRENT", "URL", "USER", "PASSWORD", "DIR"]
        print_table(headers, [[*each.values()] for each in rows])


def fields(found: Context, *, is_current: bool) -> dict[str, object]:
    return {
        "name": found.name,
        "current": is_current,
        "url": found.url,
        "user": found.user,
        "password": found.kept,
        "folder": None if found.folder is None else str(found.folder),
    }


@context.command(
    examples="""
    shmbroker context use market
    shmbroker context use --none
    """
)
@click.argument("name", required=False, shell_complete=context_names)
@click.option("--none", "is_none", is_flag=True, help="None: the vhost 'default', as at first.")
def use(name: str | None, is_none: bool) -> None:
    """Have commands use this broker that are given none.

    --vhost, --url, --broker, --context and SHMBROKER_VHOST go before it.
    """
    from shmbroker.cli.context import contexts

    if (name is None) != is_none:
        raise click.UsageError("either NAME or --none")
    with contexts.changing() as found:
        found.current = "" if name is None else found.named(name).name
    say("no context is used" if name is None else f"commands use {found.named(name).url}")


@context.command(
    examples="""
    shmbroker context add market tcp://market:61616 --user programs --password-file market.password
    shmbroker context add both "failover:(tcp://one,tcp://two)" --user ann --password-env ANN
    shmbroker context add trading shm://trading
    """
)
@click.argument("name")
@click.argument("url")
@click.option("--user", metavar="NAME", default="", help="Who connects.")
@click.option("--password-file", metavar="FILE", type=click.Path(path_type=Path),
    help="The file that holds the password; it stays where it is.")  # fmt: skip
@click.option("--password-env", metavar="VARIABLE",
    help="The environment variable that holds the password.")  # fmt: skip
@click.option("--dir", "folder", metavar="DIR", type=click.Path(path_type=Path),
    help="The folder of this broker, if it is on this host.")  # fmt: skip
@click.option("--replace", is_flag=True, help="Also if there is one of this name.")
def add(
    name: str, url: str, user: str, password_file: Path | None, password_env: str | None,
    folder: Path | None, replace: bool,
) -> None:  # fmt: skip
    """Add a broker: how to reach it, by which user, and where the password is."""
    from shmbroker.cli.context import contexts
    from shmbroker.cli.context.contexts import Context

    check_url(url)
    contexts.addresses(url)  # it is a url
    password = secret(password_file, password_env)
    has_login = [bool(user), password is not None]
    if has_login != [not url.startswith(contexts.SHARED)] * 2:
        raise click.UsageError("tcp://HOST:PORT takes --user and --password-file or "
                               "--password-env; shm://VHOST takes none")  # fmt: skip
    with contexts.changing() as found:
        if name in found.by_name and not replace:
            raise click.ClickException(f"there is a context {name!r} already: add --replace")
        found.put(Context(name, url, user, password, folder and folder.absolute()))
    say(f"context {name!r}; use it: shmbroker context use {name}")


def secret(file: Path | None, variable: str | None) -> Secret | None:
    from shmbroker.ipc.instance.config.secret import Secret, check_kept

    if file is not None and variable is not None:
        raise click.UsageError("either --password-file or --password-env")
    if file is not None:
        check_kept(file)
        return Secret("file", str(file.absolute()))
    return None if variable is None else Secret("env", variable)


@context.command(examples="shmbroker context remove market")
@name_argument
def remove(name: str) -> None:
    """Remove a context.  The file of its password, and its broker, stay."""
    from shmbroker.cli.context import contexts

    with contexts.changing() as found:
        del found.by_name[found.named(name).name]
        if found.current == name:
            found.current = ""
    say(f"context {name!r} is removed")
