"""`shmbroker create`: an instance in a folder; alone, or one of several that work together."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from shmbroker.cli import flags
from shmbroker.cli.group import Verb
from shmbroker.cli.instance import setting_of, settings_option
from shmbroker.cli.joining import joined_to, tell_live
from shmbroker.cli.output import say

if TYPE_CHECKING:
    from shmbroker.ipc.instance.config.config import Config
    from shmbroker.netbridge.config.template import Joined

PASSWORD_BYTES: Final = 32
PORTS: Final = click.IntRange(1, 65535)
OF_NETWORK: Final = ("port", "console_port", "is_clustered", "is_replicated")


def network_options(function: Callable[..., None]) -> Callable[..., None]:
    """Of a broker that others reach."""
    options = (
        click.option("--replicated", "is_replicated", is_flag=True,
            help="Of two that copy their journal to each other: docs/replication.md."),
        click.option("--clustered", "is_clustered", is_flag=True,
            help="A node of a cluster: docs/clusters.md."),
        click.option("--join", metavar="DIR|URI",
            help="Take cluster and addresses from this instance, or from the broker at this "
            "address.  With --role backup it is the backup of that one, whose ha.members then has "
            "both."),
        click.option("--password-file", metavar="FILE",
            help="The password of its programs: a live and a backup have the same.  [made at "
            "random; with --join that one's]"),
        click.option("--witness", metavar="URI",
            help="Who says which member may be live: docs/witness.md."),
        click.option("--on-partition", type=click.Choice(["stop-confirming", "continue-alone"]),
            help="What a member does that cannot ask anybody."),
        click.option("--quorum-size", type=click.IntRange(2), metavar="N",
            help="So many lives of the cluster vote in the place of a witness."),
        click.option("--host", metavar="NAME", default="127.0.0.1", show_default=True,
            help="Where it listens, and others reach it."),
        click.option("--port", type=PORTS,
            help="For programs; the next ones are for a witness, members and nodes.  [61616]"),
        click.option("--console-port", type=PORTS, help="On 127.0.0.1.  [8161]"),
        click.option("--port-offset", type=click.IntRange(0, 60000), default=0, metavar="N",
            help="Added to all ports: a second instance on this host."),
        click.option("--cluster-user", metavar="NAME",
            help="By which brokers know each other.  [cluster]"),
        click.option("--cluster-password-file", metavar="FILE",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="The password for that; --join URI needs it.  [made at random]"),
        click.option("--static-cluster", metavar="URI",
            help="Another node of the cluster: its port for nodes."),
        click.option("--group-name", metavar="NAME",
            help="Only members with the same one replicate to each other."),
        click.option("--max-hops", type=click.IntRange(0), metavar="N",
            help="How many nodes away a message may go; 0: the node only votes."),
        click.option("--message-load-balancing", metavar="MODE",
            help="on-demand, strict, off or off-with-redistribution."),
    )  # fmt: skip
    for each in reversed(options):
        function = each(function)
    return function


@click.command(
    cls=Verb,
    examples="""
    shmbroker create /var/lib/shmbroker/orders --vhost orders
    shmbroker create live --vhost orders --store /shared/orders
    shmbroker create backup --vhost orders --store /shared/orders --role backup
    shmbroker create live --replicated --witness tcp://three:61617
    shmbroker create backup --replicated --join live --role backup --port-offset 100
    shmbroker create east --clustered --queues orders,payments
    shmbroker create scratch --set store.segment=16MiB --set ha.failover-on-shutdown=true
    """,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the instance.  [name of the folder]")
@click.option(
    "--vhost", metavar="NAME", help="Name of the vhost; programs connect to shm://NAME.  [default]"
)
@click.option("--store", metavar="PATH", help="Folder that live and backup share.  [DIR/data]")
@click.option(
    "--role",
    type=click.Choice(["live", "backup"]),
    help="A backup waits until a live fails.  [live]",
)
@click.option("--queues", metavar="A,B", help="Queues that it makes once it is live.")
@network_options
@settings_option
def create(
    folder: Path, name: str | None, vhost: str | None, store: str | None, role: str | None,
    queues: str | None, settings: tuple[str, ...], join: str | None, **network: Any,
) -> None:  # fmt: skip
    """Create an instance in DIR.

    An instance is a configuration, a log and a store.  An existing store is used as it is, so that
    live and backup can share one.  Only this user may read the files.

    With --replicated, --clustered or a port, programs and brokers on other hosts reach it, and it
    has a console.  The passwords are in files in DIR: programs.password is for programs.  Commands
    of this user find it there by its address: `shmbroker context list`.

    --join URI asks a broker on another host.  Whoever joins has the passwords already, as copies
    of its files cluster.password and programs.password: they are proved, and not sent.
    """
    from shmbroker.ipc.instance import creation
    from shmbroker.ipc.instance.config.config import FILE
    from shmbroker.netbridge.config.config import network as checked

    given: dict[str, object] = {"instance.name": name or folder.absolute().name}
    joined, passwords = joined_to(join, role, network), dict[str, str]()
    if joined is not None or any(network[each] for each in OF_NETWORK):
        flags.check(network, joined, role)
        more, passwords = of_network(str(given["instance.name"]), joined, role, network)
        given.update(more)
    elif any(each for key, each in network.items() if key != "host"):
        raise click.UsageError("say --replicated, --clustered or --port as well")
    if store is not None:
        given["store.path"] = str(Path(store).absolute())
    if queues is not None:
        given["instance.queues"] = [each.strip() for each in queues.split(",") if each.strip()]
    given.update({
        key: value for key, value in (("instance.vhost", vhost), ("ha.role", role)) if value
    })  # fmt: skip
    set_here = dict(setting_of(each) for each in settings)
    given.update(set_here)
    with flags.named(folder.absolute() / FILE, set_here):
        checked(folder, given)
        for each in (folder / file for file in passwords):
            if each.exists():
                raise click.ClickException(f"{each} is there already: remove it, or take another "
                                           "folder")  # fmt: skip
        config = creation.create(folder, given)
    for file, password in passwords.items():
        written(folder / file, password)
    is_alone = config.policy == "replication" and len(config.members) == 1
    then = f"start it: shmbroker start {folder}"
    if is_alone:
        then = f"make its backup: shmbroker create DIR --join {folder} --role backup"
    say(f"{config.role} {config.name!r} of vhost {config.vhost!r}, with its journal in "
        f"{config.store}; {then}")  # fmt: skip
    in_contexts(config, given, joined if role == "backup" else None)
    if joined is not None and role == "backup":
        tell_live(joined, given)


def in_contexts(config: Config, given: dict[str, object], joined: Joined | None) -> None:
    """So that commands of this user need no password; `joined`: of which it is the backup."""
    from shmbroker.cli.context.instance import remember, remember_member
    from shmbroker.netbridge.config.template import ADDRESS, PROGRAMS, password_of

    uris = [str(given[ADDRESS])] if ADDRESS in given else []
    password = config.folder / password_of(PROGRAMS) if uris else None
    if joined is not None and ADDRESS in joined.values:
        uris.insert(0, str(joined.values[ADDRESS]))
        remember_member(Path(joined.place), uris)
    remember(config.folder, config.name, config.vhost, uris, PROGRAMS, password)


def of_network(
    name: str, joined: Joined | None, role: str | None, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """What is in its file, and the passwords by their files."""
    from shmbroker.cli.console.supervised import missing
    from shmbroker.netbridge.config import template as templates
    from shmbroker.netbridge.config.template import CLUSTER, PROGRAMS, USER, Template

    is_member = joined is not None and role == "backup"
    made = Template(
        name,
        options["host"],
        port=(options["port"] or templates.PORT) + options["port_offset"],
        console_port=(options["console_port"] or templates.CONSOLE_PORT) + options["port_offset"],
        is_replicated=options["is_replicated"] or is_member,
        is_clustered=options["is_clustered"] or (joined is not None and joined.is_clustered),
        witness=options["witness"],
        user=options["cluster_user"] or USER,
    )
    given = made.given | ({} if joined is None else joined.given(made, is_member=is_member))
    if options["console_port"] is None and (lacking := missing()):
        given = {key: each for key, each in given.items() if not key.startswith("console.")}
        say(f"it has no console, for want of {' and '.join(lacking)}: docs/console.md")
    given |= {
        key: options[option]
        for key, option in (
            ("ha.replication.on-partition", "on_partition"),
            ("ha.replication.quorum-size", "quorum_size"),
            ("ha.replication.group-name", "group_name"),
            (f"cluster.{CLUSTER}.max-hops", "max_hops"),
            (f"cluster.{CLUSTER}.message-load-balancing", "message_load_balancing"),
        )
        if options[option] is not None
    }
    if options["static_cluster"] is not None:
        given["connectors.static.uri"] = options["static_cluster"]
        given[f"cluster.{CLUSTER}.static-connectors"] = ["static"]
    passwords = {}
    for whose in (PROGRAMS, USER) if made.is_replicated or made.is_clustered else (PROGRAMS,):
        file = options["cluster_password_file"] if whose == USER else None
        passwords[templates.password_of(whose)] = (
            file.read_text(encoding="utf-8").strip() if file is not None
            else joined.passwords[whose] if joined is not None
            else _given_password(options["password_file"]) if options["password_file"]
            else secrets.token_urlsafe(PASSWORD_BYTES)
        )  # fmt: skip
    return given, passwords


def _given_password(file: str) -> str:
    from shmbroker.ipc.instance.config.secret import Secret

    return Secret("file", file).revealed("--password-file", Path()).strip()


def written(file: Path, password: str) -> None:
    from shmbroker.ipc.base.trust import PRIVATE_MODE

    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE)
    with os.fdopen(made, "w", encoding="utf-8") as opened:
        opened.write(f"{password}\n")
