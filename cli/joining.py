"""`shmbroker create --join`: what is taken from the instance that another one comes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from shmbroker.cli.output import say

if TYPE_CHECKING:
    from shmbroker.netbridge.config.template import Joined

NAME: Final = "shmbroker create --join"


def is_uri(place: str) -> bool:
    return "://" in place or "(" in place


def joined_to(place: str | None, role: str | None, options: dict[str, Any]) -> Joined | None:
    if place is None:
        return None
    from shmbroker.netbridge.config.template import Joined

    joined = invited(place, options) if is_uri(place) else Joined.of(Path(place))
    if role == "backup" and not joined.is_replicated:
        raise click.UsageError(f"{place} has no backups of this kind: make it with --replicated")
    if role != "backup" and not joined.is_clustered:
        raise click.UsageError(f"{place} is in no cluster: make it with --clustered, or say "
                               "--role backup")  # fmt: skip
    return joined


def invited(uri: str, options: dict[str, Any]) -> Joined:
    """Ask the broker there.  No password is sent: both are known here already."""
    import shmbroker
    from shmbroker.cli.connection import Far, check_url, login_of
    from shmbroker.ipc.instance.config.secret import Secret
    from shmbroker.netbridge.broker.invitation import INVITE, asked
    from shmbroker.netbridge.config.template import PROGRAMS, USER, Joined

    check_url(uri)
    file = options["cluster_password_file"]
    if file is None:
        raise click.UsageError(
            f"--join {uri} takes --cluster-password-file: a copy of cluster.password of that "
            "instance, which proves the right to join"
        )
    ours = Secret("file", str(file)).revealed("--cluster-password-file", Path()).strip()
    theirs = options["password_file"]
    given = None if theirs is None else Secret("file", theirs).revealed("--password-file", Path())
    user, password = login_of(Far(uri, given))
    if user != PROGRAMS:
        raise click.UsageError(f"the user of --join is {PROGRAMS!r}, which the new one has too")
    with shmbroker.connect(uri, user=user, password=password, name=NAME) as broker:
        question = asked(options["cluster_user"] or USER, ours)
        [values] = cast(Any, broker).order(INVITE, **question)
    return Joined.told(uri, values, {PROGRAMS: password or "", USER: ours})


def tell_live(joined: Joined, given: Mapping[str, Any]) -> None:
    """Its file names both, and both consoles, from now on; of one on another host people are told
    what to write."""
    from shmbroker.ipc.instance.config.config import FILE, toml_value
    from shmbroker.ipc.instance.whole import write_text
    from shmbroker.netbridge.config.template import console_of

    members = f"members = {toml_value(given['ha.members'])}"
    if is_uri(joined.place):
        say(
            f"write into [ha] of {FILE} of each member at {joined.place}, and restart it: {members}"
        )
        return
    file = Path(joined.place) / FILE
    text = file.read_text(encoding="utf-8")
    lines = {"ha": members}
    if re.search(r"(?m)^\[console\]", text):
        lines["console"] = f"others = {toml_value([*joined.consoles, *console_of(given)])}"
    to_write = []
    for table, line in lines.items():
        key = line.partition(" ")[0]
        changed, count = re.subn(rf"(?m)^{key} = .*$", line.replace("\\", r"\\"), text)
        if count == 1:
            text = changed
        else:
            to_write.append(f"into [{table}] of {file}: {line}")
    write_text(file, text)
    if to_write:
        raise click.ClickException(f"write {', and '.join(to_write)}")
    say(f"{file} has both members now; if that broker runs, restart it")
