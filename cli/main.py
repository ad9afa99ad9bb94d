"""The command `shmbroker`: its verbs, and its exit codes.

The module of a verb is imported when the verb is used, and the API when the verb runs.  That keeps
the start fast.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from shmbroker.cli.group import LazyGroup
from shmbroker.ipc.base.errors import Error, shortened
from shmbroker.ipc.base.refusal import told

CTRL_C = 130
BROKEN_PIPE = 141
"""The codes of a shell for a program that SIGINT or SIGPIPE ended."""

VERBS = {
    "bench": "bench:bench",
    "bind": "bind:bind",
    "browse": "messages:browse",
    "browser": "browser:browser",
    "check": "check:check",
    "cluster": "cluster:cluster",
    "completion": "completion:completion",
    "config": "config:config",
    "console": "console.command:console",
    "consumer": "consumer:consumer",
    "context": "context.command:context",
    "create": "create:create",
    "disconnect": "disconnect:disconnect",
    "divert": "divert:divert",
    "doctor": "doctor:doctor",
    "errors": "errors:errors",
    "exchange": "exchange:exchange",
    "group": "grouping:group",
    "ha": "ha:ha",
    "journal": "journal:journal",
    "key": "key:key",
    "kill": "instance:kill",
    "latency": "latency:latency",
    "link": "link:link",
    "mask": "mask:mask",
    "metrics": "metrics.command:metrics",
    "mta": "agent:mta",
    "participants": "participants:participants",
    "producer": "producer:producer",
    "pub": "publish:pub",
    "queue": "queue:queue",
    "request": "request:request",
    "run": "run:run",
    "settings": "settings:settings",
    "start": "start:start",
    "status": "instance:status",
    "stop": "instance:stop",
    "store": "store:store",
    "sub": "subscribe:sub",
    "subscription": "subscription:subscription",
    "top": "top:top",
    "unbind": "bind:unbind",
    "undivert": "divert:undivert",
    "unit": "instance:unit",
    "user": "user:user",
    "vhost": "vhost:vhost",
    "witness": "witness:witness",
}


class Root(LazyGroup):
    """The top command.  It flushes its output before it reports success."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader of our output is gone: exit without a message
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN_PIPE)
        return answer


def version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version  # some 30 ms

        click.echo(f"shmbroker {version('shmbroker')}")
        ctx.exit()


@click.command(
    cls=Root,
    verbs=VERBS,
    examples="""
    shmbroker vhost create default
    shmbroker queue declare orders
    shmbroker pub orders 'one coffee'
    shmbroker sub orders --from earliest --count 1
    shmbroker top
    """,
    epilog="""
    \b
    Exit codes: 0 ok, 1 failed, 2 usage error, 130 Ctrl-C, 141 output closed by its reader.
    `check` uses those of Nagios: 0 ok, 1 warning, 2 critical, 3 unknown.
    """,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--vhost", metavar="NAME", help="Name of the vhost.  [env SHMBROKER_VHOST, else 'default']"
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=version,
    help="Show the version.",
)  # fmt: skip
def root(vhost: str | None) -> None:
    """A message broker for one host, in shared memory."""


def open_streams() -> None:
    """One that was closed (`>&-`) is a stream from or to nowhere: there is none in Python then, and
    its number would be that of the next file that is opened."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def failed(what: str) -> int:
    text = f"shmbroker: {shortened(what)}"
    try:
        from shmbroker.cli.output import say
    except OSError:  # it may open no more files, and has not read that one
        click.echo("".join(each for each in text if each.isprintable()), err=True)
    else:
        say(text)
    return 1


def main() -> int:
    """Run the command line and return the exit code."""
    open_streams()
    try:
        code: int | None = root.main(prog_name="shmbroker", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return CTRL_C
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "shmbroker"
        failed(f"{error.format_message().rstrip('.')}; see {path} --help")
        return error.exit_code
    except click.ClickException as error:
        return failed(error.format_message())
    except Error as error:
        return failed(str(error))
    except OSError as error:
        return failed(told(error))
    return code or 0
