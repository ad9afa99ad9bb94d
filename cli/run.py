"""`shmbroker run`: run a broker, or a repairer of a vhost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from shmbroker.cli import pairing
from shmbroker.cli.connection import connected, vhost_option
from shmbroker.cli.context.instance import InstanceFolder
from shmbroker.cli.group import Verb
from shmbroker.cli.instance import setting_of, settings_option
from shmbroker.cli.output import say
from shmbroker.cli.units import DURATION, SIZE, format_size

if TYPE_CHECKING:
    from shmbroker.cli.console.supervised import Supervised
    from shmbroker.ipc.instance.config.config import Config
    from shmbroker.ipc.instance.instance import Instance
    from shmbroker.ipc.instance.log import Log
    from shmbroker.ipc.instance.reloading import Reloaded
    from shmbroker.ipc.spool.spool import Spool
    from shmbroker.netbridge.config.config import Network
    from shmbroker.netbridge.replicated.instance import ReplicatedInstance
    from shmbroker.netbridge.security.credential import Credentials


ELF_HEADERS = "0x10"


class Stopped(Exception):
    """SIGTERM: end in good order."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


@click.command(
    cls=Verb,
    examples="""
    shmbroker run /var/lib/shmbroker/orders
    shmbroker run /var/lib/shmbroker/one --config pair.toml --port 5555 --is-primary
    shmbroker run --vhost trading
    shmbroker run --spool /var/lib/shmbroker/latency --spool-keep 10GiB
    """,
)
@click.argument("folder", metavar="[DIR]", required=False, type=InstanceFolder())
@click.option(
    "--moved", is_flag=True, help="Accept a store that was copied.  The original must be gone."
)
@settings_option
@pairing.config_option
@pairing.port_option
@pairing.primary_option
@pairing.backup_option
@click.option("--spool", metavar="FOLDER", type=click.Path(file_okay=False),
    help="Write recorded latencies (see `queue latency`) into this folder.")  # fmt: skip
@click.option("--spool-interval", type=DURATION, default="10s", show_default=True,
    help="Length of an interval; each gets one histogram.")  # fmt: skip
@click.option("--spool-rotate", type=DURATION, default="1h", show_default=True,
    help="Start a new file after this time.")  # fmt: skip
@click.option("--spool-size", type=SIZE, default="64MiB", show_default=True,
    help="Start a new file at this size.")  # fmt: skip
@click.option("--spool-keep", type=SIZE, default="1GiB", show_default=True,
    help="Delete the oldest files beyond this total size.")  # fmt: skip
@click.option("--spool-parquet/--spool-no-parquet", default=None,
    help="Also write Parquet.  [default: if pyarrow is installed]")  # fmt: skip
@vhost_option
def run(
    folder: Path | None,
    moved: bool,
    settings: tuple[str, ...],
    file: Path | None,
    port: int | None,
    is_primary: bool | None,
    is_backup: bool | None,
    vhost: str,
    spool: str | None,
    spool_interval: float,
    spool_rotate: float,
    spool_size: int,
    spool_keep: int,
    spool_parquet: bool | None,
) -> None:
    """Run a broker, or the repairer of a vhost.

    Runs until SIGTERM or Ctrl-C.  Messages do not pass through this process.

    With DIR (see `shmbroker create`) it runs that broker.  A live broker writes the journal of its
    vhost; a backup waits until the live fails.  It prints one line: what it is, where programs
    connect, and where its journal and its log are.  On SIGTERM it writes the journal first; a
    second SIGTERM ends it at once.

    --config, --port, --is-primary and --is-backup are for a pair (ha.policy = "pair").

    Without DIR it runs only a repairer.  When a participant dies, the repairer returns its messages
    to their queues within milliseconds.  Without a repairer, waiting participants do so within
    100 ms.  A broker is also a repairer.
    """
    said = pairing.Said(file, port, is_primary, is_backup)
    if folder is None:
        if moved or settings or said.names:
            raise click.UsageError(f"{said.names or ('--moved' if moved else '--set')} needs DIR")

        def opened(folder: str) -> Spool:
            from shmbroker.ipc.spool.spool import Spool

            return Spool(
                f"shm://{vhost}",
                folder,
                interval=spool_interval,
                rotate=spool_rotate,
                rotate_bytes=spool_size,
                keep_bytes=spool_keep,
                parquet=spool_parquet,
            )

        repair_vhost(vhost, None if spool is None else partial(opened, spool))
    elif spool is not None:
        raise click.UsageError(
            "--spool is for a repairer: shmbroker run --vhost NAME --spool FOLDER; "
            "for the broker in DIR set spool.path in its configuration"
        )
    else:
        flags = dict(setting_of(each) for each in settings)
        if said.names:
            flags |= pairing.flags(folder, said, flags)
        run_instance(folder, moved, flags)


def run_instance(folder: Path, moved: bool, flags: dict[str, object]) -> None:
    from shmbroker.netbridge.broker.hosted import ends_with_host
    from shmbroker.netbridge.config.config import load
    from shmbroker.netbridge.config.logins import credentials

    ends_with_host(folder)
    with saying_why(folder):
        config, network = load(folder, flags)
        known, warnings = credentials(network)
        role = config.role if network.pair is None else pairing.role_of(config, network)
    for warning in warnings:
        remark(f"shmbroker: warning: {warning}")
    if network.logins:
        keep_out_of_cores()
    if network.console is not None:
        with saying_why(folder):
            check_console()
    made = replicated if config.policy == "replication" else sharing
    instance = made(config, network, known, folder, flags, moved=moved)
    remark(f"{role} {config.name!r} of vhost {config.vhost!r}: programs connect to "
           f"shm://{config.vhost}; journal in {config.store}, log in {config.log}; "
           f"end it: shmbroker stop {folder}")  # fmt: skip
    console = begun_console(network, folder, flags, instance.log)
    if console is not None and instance.reload is not None:
        instance.reload = also(console, instance.reload)
    if code := instance.run():
        remark(f"shmbroker: {instance.why}")
    elif console is not None:
        console.end()
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(code)  # its threads sleep in the kernel, so a normal exit would wait for them


@contextmanager
def saying_why(folder: Path) -> Iterator[None]:
    """Why an instance could not start, so that `status` says it, too."""
    from shmbroker.ipc.base.errors import Error
    from shmbroker.ipc.instance.config.config import FILE
    from shmbroker.ipc.instance.status import could_not_start

    try:
        yield
    except Error as error:
        if (folder / FILE).exists():
            could_not_start(folder, str(error))
        raise


def remark(text: str) -> None:
    """Of a broker or a repairer, which goes on without: it may go to a full disk, or to nobody.
    The log of a broker and `status` say what matters."""
    with suppress(OSError):
        say(text)


def also(
    console: Supervised, reload: Callable[[Config], Reloaded]
) -> Callable[[Config], Reloaded]:
    """Its console reads the configuration again, too."""

    def reloaded(running: Config) -> Reloaded:
        found = reload(running)
        console.reads_again()
        return found

    return reloaded


def check_console() -> None:
    from shmbroker.cli.console import supervised

    supervised.check()


def begun_console(
    network: Network, folder: Path, flags: dict[str, object], log: Log
) -> Supervised | None:
    """One of before is ended, also if there is to be none now."""
    from shmbroker.ipc.instance.status import RUN

    if network.console is None and not (folder / RUN / "console").exists():
        return None
    from shmbroker.cli.console import supervised

    if network.console is None:
        supervised.end(folder)
        return None
    console = supervised.Supervised(folder, flags, log)
    console.begin()
    return console


def sharing(
    config: Config,
    network: Network,
    known: Credentials,
    folder: Path,
    flags: dict[str, object],
    *,
    moved: bool,
) -> Instance:
    """A broker whose backups have its store, or one of a pair, which has none."""
    from shmbroker.ipc.instance.instance import Instance
    from shmbroker.netbridge.broker.owner import Owner
    from shmbroker.netbridge.clustered.owner import ClusterOwner
    from shmbroker.netbridge.config.reload import Reloader
    from shmbroker.netbridge.paired.owner import PairOwner

    progress = show if sys.stderr.isatty() else None
    instance = Instance(config, moved=moved, progress=progress)
    kind: type[Owner] = Owner if network.pair is None else PairOwner
    if network.cluster is not None:
        kind = ClusterOwner
    owner = kind(config, network, known, instance.log)
    owner.fails = instance.fails
    instance.network, instance.reload = owner, Reloader(folder, flags, network, owner.reload)
    return instance


def replicated(
    config: Config,
    network: Network,
    known: Credentials,
    folder: Path,
    flags: dict[str, object],
    *,
    moved: bool,
) -> ReplicatedInstance:
    """A member of a replicated node."""
    from shmbroker.netbridge.config.reload import Reloader
    from shmbroker.netbridge.replicated.instance import ReplicatedInstance

    if moved:
        raise click.UsageError("--moved is for a store that is shared: a member has one of its own")
    instance = ReplicatedInstance(config, network, known)
    instance.reload = Reloader(folder, flags, network, instance.reloaded)
    return instance


def keep_out_of_cores() -> None:
    """A core of this process has no heap and no stacks: passwords stand there."""
    with suppress(OSError):  # a kernel without cores
        Path("/proc/self/coredump_filter").write_text(ELF_HEADERS)


def show(done: int, size: int) -> None:
    """Show the progress of restoring on one line, as long as its terminal is there."""
    line = f"\rrestoring: {format_size(done)} of {format_size(size)}\x1b[K"
    with suppress(OSError):
        click.echo(line, err=True, nl=False)


def repair_vhost(vhost: str, spool_of: Callable[[], Spool] | None) -> None:
    from shmbroker.ipc.instance import repairing

    signal.signal(signal.SIGTERM, stop)
    with connected(vhost) as broker, ExitStack() as open_spools:
        spool = None if spool_of is None else open_spools.enter_context(spool_of())
        remark(f"repairing vhost {vhost}")

        def repair() -> None:
            if repaired := broker.repair_for(None if spool is None else ticked(spool)):
                remark(f"a participant died: {repaired} repairs")

        try:
            repairing.for_ever(repair, remark)
        except Stopped:
            remark(f"no longer repairing vhost {vhost}")


def ticked(spool: Spool) -> float:
    """Write the spool if it is due; the time until it is due again.

    Its errors are only reported: repairing must go on.
    """
    from shmbroker.ipc.base.errors import Error

    before = spool.unread
    try:
        left = spool.tick()
        if spool.unread != before:
            remark(f"spool: not read: {'; '.join(spool.unread) or 'nothing'}")
        return left
    except Error as error:
        remark(f"spool: {error}")
        return spool.interval
