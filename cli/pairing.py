"""A broker of a pair on the command line: what `run` is told, and what `status` shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli import ordering
from shmbroker.cli.output import print_json, print_pairs
from shmbroker.cli.units import format_duration

if TYPE_CHECKING:
    from shmbroker.ipc.instance.config.config import Config
    from shmbroker.ipc.instance.status import Status
    from shmbroker.netbridge.config.config import Network

ACTIVE = "active"
PASSIVE = "passive"
PORT_MAX = 65535

config_option = click.option(
    "--config", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="One file for both brokers of a pair; DIR is made if it is not there.",
)  # fmt: skip
port_option = click.option(
    "--port", type=click.IntRange(1, PORT_MAX),
    help="The port of the only acceptor of a broker of a pair; one is made if there is none.",
)  # fmt: skip
primary_option = click.option(
    "--is-primary", "--is_primary", "is_primary", is_flag=False, flag_value="1", type=bool,
    metavar="[1]", help="This is the primary of the pair.",
)  # fmt: skip
backup_option = click.option(
    "--is-backup", "--is_backup", "is_backup", is_flag=False, flag_value="1", type=bool,
    metavar="[1]", help="This is the backup of the pair.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    file: Path | None
    port: int | None
    is_primary: bool | None
    is_backup: bool | None

    @property
    def names(self) -> str:
        """Of the options that were used."""
        used = {
            "--config": self.file, "--port": self.port, "--is-primary": self.is_primary,
            "--is-backup": self.is_backup,
        }  # fmt: skip
        return ", ".join(name for name, each in used.items() if each is not None)


def flags(folder: Path, said: Said, given: dict[str, object]) -> dict[str, object]:
    """What was said, as options; a folder without a file of its own has one that names FILE."""
    from shmbroker.ipc.instance.config.config import read_file
    from shmbroker.netbridge.config.config import layers
    from shmbroker.netbridge.paired import flags as pair

    own: dict[str, object] = {}
    if said.file is not None:
        check_is_ours(folder)
        values = read_file(said.file) | given
        own = {
            key: folder.absolute().name
            for key in ("instance.name", "instance.vhost")
            if key not in values
        }
    else:
        values = dict(layers(folder, given).values)
    if values.get(pair.POLICY) != "pair":
        place = said.file or folder
        raise click.ClickException(f'{said.names} needs ha.policy = "pair" in {place}')
    found = pair.of_roles(said.is_primary, said.is_backup)
    if said.port is not None:
        found |= pair.of_port(values, said.port)
        if why := pair.warning(values | found, said.port):
            click.echo(f"shmbroker: warning: {why}", err=True)
    if said.file is not None:
        begin(folder, said.file, own | found)
    return own | found


def check_is_ours(folder: Path) -> None:
    from shmbroker.ipc.instance.config import config

    place = folder / config.FILE
    if place.exists() and config.place_of(folder) == place:
        raise click.UsageError(f"{folder} has a {config.FILE} of its own: leave out --config")


def begin(folder: Path, file: Path, given: dict[str, object]) -> None:
    """So that all other commands know it by its folder."""
    from shmbroker.ipc.base.trust import make_folder
    from shmbroker.ipc.instance import creation
    from shmbroker.ipc.instance.config import config
    from shmbroker.ipc.instance.whole import write_text

    make_folder(folder)
    tables: dict[str, list[str]] = {
        config.FROM: [f"file = {config.toml_value(str(file.absolute()))}"],
    }
    for key, value in given.items():
        table, _, name = key.rpartition(".")
        root, _, rest = table.partition(".")
        header = f"{root}.{config.toml_value(rest)}" if rest else root
        tables.setdefault(header, []).append(f"{name} = {config.toml_value(value)}")
    lines = ["# Written by `shmbroker run --config`."]
    for header, values in tables.items():
        lines += ["", f"[{header}]", *values]
    write_text(folder / config.FILE, "\n".join([*lines, ""]))
    creation.make_folders(config.load(folder))


def role_of(config: Config, network: Network) -> str:
    from shmbroker.netbridge.paired.options import checked

    return "primary" if checked(config, network).is_primary else "backup"


# --- status -----------------------------------------------------------------------------------


def shown(folder: Path, status: Status) -> dict[str, Any]:
    """Of the pair; the broker is asked how long the other one has been silent."""
    if status.process is not None:
        ordering.ask_to_show(folder, "ha")
    told = ordering.shown(folder, "pair")
    if status.process is None and told:
        told |= {"pair": status.state, "silence": None, "linked": False}
    return {**told, "data": "no data is replicated"}


def is_pair(folder: Path) -> bool:
    from shmbroker.ipc.instance.config import config

    return config.load(folder).policy == "pair"


def show(folder: Path, expect: str | None, is_primary: bool, is_whole: bool, as_json: bool) -> None:
    """`ha status`; exits with 1 as it does for a member of a replicated node."""
    from shmbroker.ipc.instance import status as states

    if is_whole:
        raise click.UsageError("--all is for members of a replicated node")
    status = states.read(folder)
    told = shown(folder, status)
    if is_primary:
        raise SystemExit(0 if told.get("pair") == ACTIVE else 1)
    if as_json:
        print_json(told)
    else:
        print_pairs(as_text(told))
    if status.process is None or not str(told.get("pair", "")).startswith(expect or ""):
        raise SystemExit(1)


def could_take_over(folder: Path, status: Status) -> str:
    """Why it would not accept an application if the other one were dead; nothing if it would."""
    told = shown(folder, status)
    state = status.state if status.process is None else str(told.get("pair", ""))
    return "" if state in (ACTIVE, PASSIVE) else f"it is {state or status.state}"


def as_text(told: dict[str, Any]) -> dict[str, Any]:
    if not told:
        return {}
    silence = told.get("silence")
    peer = told.get("peer") or "not heard of"
    return {**told, "peer": peer, "silence": "" if silence is None else format_duration(silence)}
