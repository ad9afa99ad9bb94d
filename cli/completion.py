"""`shmbroker completion`: what a shell needs to complete commands and names."""

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
    """Write the completion script of a shell.

    Names of queues, exchanges and vhosts are completed live.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "shmbroker", "_SHMBROKER_COMPLETE")
    # BashComplete.source would run a bash to ask for its version, and complain if there is none
    click.echo(ShellComplete.source(script))
