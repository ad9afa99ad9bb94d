"""The broker that a command uses, in shared memory or over a link, and the connection to it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from shmbroker.cli.context.names import context_names
from shmbroker.cli.suggestion import suggesting

if TYPE_CHECKING:
    from shmbroker.cli.context.contexts import Context
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.exchange.exchange import Exchange
    from shmbroker.ipc.queue.queue import Queue

VARIABLE = "SHMBROKER_VHOST"
DEFAULT = "default"
SHARED: Final = "shm://"
FAR: Final = "shmbroker.link"
"""Where the context of a command has the broker that is reached over a link."""
PASSWORD: Final = re.compile(r":(?!//)[^,()?]*@")
NEEDS_MEMORY: Final = {
    "check vhost": "it looks at the memory and the processes of the broker's host",
    "doctor": "it examines this host",
    "queue latency": "histograms lie in shared memory",
    "run": "a broker runs on its own host",
}
"""The verbs that cannot be over a link, and why."""

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(slots=True)
class Far:
    """A broker that is reached over a link, or by its folder."""

    url: str = ""
    password: str | None = None
    folder: Path | None = None
    """Of an instance on this host."""
    context: Context | None = None
    """By which it was named."""
    observes: bool = False
    """The verb only looks."""


def named_vhost(ctx: click.Context) -> str:
    """From --vhost after the verb, before it, or from the environment; empty: from nowhere."""
    candidates = (
        ctx.params.get("vhost"),
        ctx.find_root().params.get("vhost"),
        os.environ.get(VARIABLE),
    )
    return next((name for name in candidates if name), "")


def chosen_vhost(ctx: click.Context) -> str:
    """The one that is named, or the default."""
    return named_vhost(ctx) or DEFAULT


def vhost_names(_ctx: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from shmbroker.ipc.vhost import vhost

    return [name for name in vhost.names() if name.startswith(incomplete)]


def _far(ctx: click.Context) -> Far:
    far: Far = ctx.meta.setdefault(FAR, Far())
    return far


def verb_of(ctx: click.Context) -> str:
    """As it is called, without the name of the program."""
    words = ""
    while ctx.parent is not None:
        words = f"{ctx.info_name} {words}"
        ctx = ctx.parent
    return words.rstrip()


def chosen_broker() -> Far | None:
    """By --broker, --url or --context; None: none of them was given."""
    far = _far(click.get_current_context())
    if far.url.startswith(SHARED):
        raise click.UsageError("the process of the broker is asked: give its folder, --broker DIR")
    if far.password is not None and not far.url:
        raise click.UsageError("--password-file goes with --url tcp://HOST:PORT")
    return far if far.url or far.folder is not None else None


def is_over_link() -> bool:
    """Of the verb that runs; nobody else uses --url."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(_far(context).url)


def _vhost(ctx: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Called after the other options, which are eager."""
    far = _far(ctx)
    if value and (far.url or far.folder is not None):
        raise click.UsageError("either --vhost, --url, --broker or --context")
    if not (value or far.url or far.folder is not None or named_vhost(ctx)):
        _take_current(ctx)
    if far.folder is not None:
        from shmbroker.ipc.instance.config import config

        return config.load(far.folder).vhost
    if far.url.startswith(SHARED):
        value, far.url = far.url.removeprefix(SHARED), ""
    if far.password is not None and not far.url:
        raise click.UsageError("--password-file goes with --url tcp://HOST:PORT")
    return value or chosen_vhost(ctx)


def check_url(value: str) -> None:
    if PASSWORD.search(value):
        raise click.UsageError(
            "all on this host see a command line: say the password by SHMBROKER_PASSWORD, or "
            "--password-file FILE"
        )
    if ":" not in value:
        raise click.UsageError(f"a url is tcp://HOST:PORT/VHOST or shm://VHOST, and not {value!r}")


def check_near(ctx: click.Context, url: str) -> None:
    """NotLocal if the verb cannot be over a link."""
    from shmbroker.ipc.base.errors import NotLocal

    verb = verb_of(ctx)
    if verb in NEEDS_MEMORY and not url.startswith(SHARED):
        what = (
            f"`shmbroker {verb}` cannot be over a link: {NEEDS_MEMORY[verb]}: call it there, "
            "with --vhost"
        )
        if verb.startswith("check "):  # to Nagios the exit code of a failure is a warning
            raise click.UsageError(what)
        raise NotLocal(what)


def _url(ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    check_url(value)
    check_near(ctx, value)
    if _is_chosen(ctx):
        raise click.UsageError("either --url, --broker or --context")
    _far(ctx).url = value


def _is_chosen(ctx: click.Context) -> bool:
    far = _far(ctx)
    return bool(far.url) or far.folder is not None or far.context is not None


def _context(ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from shmbroker.cli.context import contexts

    if _is_chosen(ctx):
        raise click.UsageError("either --url, --broker or --context")
    _take(ctx, contexts.read().used(value))


def _take_current(ctx: click.Context) -> None:
    """The context in use, if there is one."""
    from shmbroker.cli.context import contexts

    found = contexts.read()
    if found.current:
        _take(ctx, found.used(found.current))


def _take(ctx: click.Context, context: Context) -> None:
    """Over its link; what needs the memory of this host looks at its instance."""
    far = _far(ctx)
    far.context = context
    is_near = verb_of(ctx) in NEEDS_MEMORY or not context.is_over_link
    if is_near and context.folder is not None:
        far.folder = context.folder
        return
    check_near(ctx, context.url)
    far.url = context.url


def _broker(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from shmbroker.ipc.instance.config.config import FILE

    if (Path(value) / FILE).is_file():
        _far(ctx).folder = Path(value)
    elif Path(value).is_dir() or value[:1] in "/.":
        raise click.UsageError(f"{value} is no folder of a broker: it has no {FILE}")
    else:
        is_uri = "(" in value or "://" in value
        _url(ctx, option, value if is_uri else _connector(value) or f"tcp://{value}")


def _connector(name: str) -> str:
    """The uri of that connector of the broker in the current folder, if it is the name of one."""
    from shmbroker.ipc.instance.config.config import FILE

    if not Path(FILE).is_file():
        return ""
    from shmbroker.netbridge.config import config

    found = config.load(Path())[1].connectors.get(name)
    return "" if found is None else str(found)


def _password(ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    from shmbroker.ipc.instance.config.secret import Secret

    if value is not None:
        _far(ctx).password = Secret("file", value).revealed("--password-file", Path())


def url_option(function: Function) -> Function:
    """The option `--url`."""
    option = click.option(
        "--url", metavar="URL", is_eager=True, expose_value=False, callback=_url,
        help="A broker on another host: tcp://[USER@]HOST:PORT/VHOST, or a list such as "
        "failover:(tcp://a,tcp://b).  [user and password: env SHMBROKER_USER, SHMBROKER_PASSWORD, "
        "else from the context of its address]",
    )  # fmt: skip
    return option(function)


def broker_option(function: Function) -> Function:
    """The option `--broker`."""
    option = click.option(
        "-b", "--broker", metavar="HOST[:PORT]|URL|DIR", is_eager=True, expose_value=False,
        callback=_broker, help="The same as --url tcp://HOST:PORT; or the folder of a broker here; "
        "or a connector of the broker in the current folder.",
    )  # fmt: skip
    return option(function)


def context_option(function: Function) -> Function:
    """The option `--context`."""
    option = click.option(
        "--context", metavar="NAME", is_eager=True, expose_value=False, callback=_context,
        shell_complete=context_names, help="A broker of `shmbroker context list`.  [the one of "
        "`context use`]",
    )  # fmt: skip
    return option(function)


def broker_options(function: Function) -> Function:
    """`--broker`, `--url`, `--context` and `--password-file`, which `chosen_broker` answers."""
    password = click.option(
        "--password-file", metavar="FILE", is_eager=True, expose_value=False, callback=_password,
        help="With --url: the file that holds the password.",
    )  # fmt: skip
    return url_option(broker_option(context_option(password(function))))


def vhost_option(function: Function) -> Function:
    """The options that say which broker: `--vhost`, resolved, or `--url`."""
    vhost = click.option(
        "--vhost", metavar="NAME", shell_complete=vhost_names, callback=_vhost,
        help=f"Name of the vhost.  [env {VARIABLE}, else '{DEFAULT}']",
    )  # fmt: skip
    return vhost(broker_options(function))


def opened(
    ctx: click.Context, vhost: str, name: str | None = None, *, observe: bool = False
) -> Broker:
    """The connection to the broker that a command uses; it is named after the command."""
    import shmbroker

    far, name = _far(ctx), name or ctx.command_path
    far.observes = observe
    if far.url:
        user, password = login_of(far)
        return shmbroker.connect(far.url, name=name, user=user, password=password)
    return shmbroker.connect(f"{SHARED}{vhost}", name=name, observe=observe)


def login_of(far: Far) -> tuple[str | None, str | None]:
    """User and password as far as the url and the environment do not say them.

    InvalidArgument if neither they nor a context do.
    """
    from shmbroker.cli.context import contexts
    from shmbroker.ipc.base.errors import InvalidArgument
    from shmbroker.netbridge.client.connecting import USER

    told = next((each.partition(":")[0] for each in USER.findall(far.url)), "")
    user = told or os.environ.get("SHMBROKER_USER", "")
    password = far.password or os.environ.get("SHMBROKER_PASSWORD")
    if user and password:
        return user, password
    known = far.context or contexts.read().of_url(far.url, user)
    if known is None or (user and known.user != user):
        raise InvalidArgument(
            f"connecting to {USER.sub('tcp://', far.url)} takes a user and a password: keep them, "
            "shmbroker context add NAME URL --user USER --password-file FILE; or say "
            "SHMBROKER_USER and SHMBROKER_PASSWORD"
        )
    return known.user, password or known.revealed()


@contextmanager
def operating() -> Iterator[Any]:
    """A session of the role admin with the broker that is reached over a link: for orders."""
    from shmbroker.ipc.base.errors import ConnectionClosed
    from shmbroker.netbridge.client import connecting
    from shmbroker.netbridge.wire.words import Role

    context = click.get_current_context()
    far = _far(context)
    user, password = login_of(far)
    login = connecting.Login(far.url, user, password, context.command_path, role=Role.ADMIN)
    try:
        broker = connecting.connect(login)
    except ConnectionClosed as error:
        raise ConnectionClosed(f"{error}; {user} needs the role admin, and so does `roles` of the "
                               "acceptor: docs/remote.md") from error  # fmt: skip
    with broker:
        yield broker


def ordered_far(broker: Any, verb: str, **given: object) -> list[dict[str, Any]]:
    """What the broker that is reached over a link shows, or has done."""
    found: list[dict[str, Any]] = broker.order(verb, **given)
    return found


def observed(vhost: str) -> AbstractContextManager[Broker]:
    """A read-only connection.  It needs no participant id and never waits for a participant."""
    return connected(vhost, observe=True)


@contextmanager
def connected(vhost: str, *, observe: bool = False) -> Iterator[Broker]:
    """A connection that lasts as long as the block, named after the command that runs."""
    from shmbroker.ipc.vhost import vhost as vhosts

    with suggesting("vhost", vhost, vhosts.names, f"shmbroker vhost create {vhost}"):
        broker = opened(click.get_current_context(), vhost, observe=observe)
    with broker:
        yield broker


def critical_queues(broker: Broker) -> dict[str, str]:
    """What is wrong with queues that need a broker and have none; over a link they have one."""
    from shmbroker.ipc.queue.writer import without_writer

    return {} if is_over_link() else without_writer(broker)


def queue_named(broker: Broker, name: str) -> Queue:
    def known() -> list[str]:
        return [queue.name for queue in broker.queues()]

    far = _far(click.get_current_context())
    with suggesting("queue", name, known, f"shmbroker queue declare {name}"):
        return broker._queue_there(name) if far.observes else broker.queue(name)


def exchange_named(broker: Broker, name: str) -> Exchange:
    def known() -> list[str]:
        return [exchange.name for exchange in broker.exchanges()]

    with suggesting("exchange", name, known, f"shmbroker exchange declare {name} topic"):
        return broker.exchange(name)
