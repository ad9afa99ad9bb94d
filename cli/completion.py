"""`shmbroker completion`: completion scripts for shells."""

from __future__ import annotations

import click

from shmbroker.cli.group import Verb


@click.command(
    cls=Verb,
    examples="""
    source <(shmbroker completion bash)
    shmbroker completion bash > ~/.local/share/bash-completion/completions/shmbroker
    shmbroker completion zsh > "${fpath[1]}/_shmbroker"
    shmbroker completion fish > ~/.config/fish/completions/shmbroker.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    It completes commands, options, and the names of existing queues, exchanges and vhosts.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "shmbroker", "_SHMBROKER_COMPLETE")
    # BashComplete.source runs bash to ask for its version, and fails if there is none
    click.echo(ShellComplete.source(script))
