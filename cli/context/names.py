"""Shell completion of the names of contexts."""

from __future__ import annotations

import click

from shmbroker.ipc.base.errors import Error


def context_names(_ctx: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from shmbroker.cli.context import contexts

    try:
        return [name for name in contexts.read().by_name if name.startswith(incomplete)]
    except (Error, OSError):  # completion shows no errors
        return []
