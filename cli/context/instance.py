"""The instances of this host that have a context: `create` adds it, and a command takes its name
in the place of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from shmbroker.cli.context.contexts import SHARED, Context
from shmbroker.cli.output import say
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance.config.secret import Secret


class InstanceFolder(click.Path):
    """A folder; or the name of a context, if there is no folder of this name here."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        given = Path(os.fsdecode(super().convert(value, param, ctx)))
        if len(given.parts) != 1 or given.exists():
            return given
        from shmbroker.cli.context import contexts

        found = contexts.read().by_name.get(str(given))
        if found is None or found.folder is None or not found.is_there:
            return given
        if ctx is not None and not ctx.resilient_parsing:
            say(f"{given} is {found.folder}")
        return found.folder


def remember(
    folder: Path, name: str, vhost: str, uris: list[str], user: str, password: Path | None
) -> None:
    """The broker in this folder; with those of its node, if it is a member of one.

    Without a home that may be written, commands are told who connects.
    """
    from shmbroker.cli.context import contexts

    folder = folder.absolute()
    url = f"{SHARED}{vhost}" if not uris else uris[0]
    if len(uris) > 1:
        url = f"failover:({','.join(uris)})?randomize=false"
    kept = None if password is None else Secret("file", str(password.absolute()))
    try:
        with contexts.changing() as found:
            before = found.of_folder(folder)
            known = found.free(name) if before is None else before.name
            found.put(Context(known, url, user if kept else "", kept, folder))
    except (Error, OSError) as error:
        why = told(error) if isinstance(error, OSError) else str(error)
        say(f"without a context, as {contexts.place()} cannot be written: {why}")
        return
    if known != name:
        say(f"its context is {known!r}: there is another {name!r}")


def remember_member(folder: Path, uris: list[str]) -> None:
    """The context of a member whose node has one more; nothing if it has none."""
    from shmbroker.cli.context import contexts

    found = contexts.read().of_folder(folder.absolute())
    if found is not None and found.password is not None:
        password = Path(found.password.content)
        remember(folder, found.name, "", uris, found.user, password)
