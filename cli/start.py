"""`shmbroker start`: run a broker in the background."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from shmbroker.cli.group import Verb
from shmbroker.cli.instance import folder_argument, setting_of, settings_option
from shmbroker.cli.output import say, visible
from shmbroker.cli.units import DURATION, format_duration

if TYPE_CHECKING:
    from shmbroker.ipc.instance.status import Status

OUTPUT: Final = "output"
"""In run/: what the process says, which is its last words if it cannot begin."""
LAST_WORDS_MAX: Final = 2000
STANDS: Final = ("live", "passive")


@click.command(
    cls=Verb,
    examples="""
    shmbroker start /var/lib/shmbroker/orders
    shmbroker start backup --timeout 30s
    """,
)
@folder_argument
@settings_option
@click.option("--timeout", type=DURATION, default="60s", show_default=True,
    help="Wait at most this long until it is live or passive, and listens.")  # fmt: skip
def start(folder: Path, settings: tuple[str, ...], timeout: float) -> None:
    """Run the broker in DIR in the background.

    Returns when it is live or passive, and listens.  Exits with 1 if it fails, with its last words,
    or if it is neither in time: then it goes on.  What it prints is in DIR/run/output.  `shmbroker
    run` stays in front.
    """
    from shmbroker.ipc.base.trust import make_folder
    from shmbroker.ipc.instance import ordering, status
    from shmbroker.ipc.instance.config import config

    config.load(folder)
    ends_at = time.monotonic() + timeout
    for each in settings:
        setting_of(each)
    before = status.read(folder)
    if before.process is not None:
        raise click.ClickException(f"{folder} runs already: it is {before.state}")
    make_folder(folder / status.RUN)
    process = begun(folder, settings)
    found = awaited(folder, process, timeout)
    if found.state in STANDS:
        from shmbroker.netbridge.serving.programs import PROGRAMS

        with suppress(status.NotRunning):  # it answers when its network has begun, or has none
            ordering.asked_to_show(folder, PROGRAMS, max(0, ends_at - time.monotonic()))
        say(f"{found.state}: {folder}, process {process.pid}; end it: shmbroker stop {folder}")
    elif process.poll() is None:
        raise click.ClickException(
            f"{folder} is {found.state} after {format_duration(timeout)}, and goes on: shmbroker "
            f"status {folder} --wait live"
        )
    else:
        raise click.ClickException(found.why or last_words(folder) or f"{folder} has ended")


def begun(folder: Path, settings: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """With a session of its own, so that it outlives the shell."""
    from shmbroker.ipc.base import trust
    from shmbroker.ipc.instance.status import RUN

    options = [word for each in settings for word in ("--set", each)]
    program = "import sys; from shmbroker.cli.main import main; sys.exit(main())"
    output = trust.opened(folder / RUN / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        return subprocess.Popen(
            [sys.executable, "-c", program, "run", str(folder.absolute()), *options],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(output)


def awaited(folder: Path, process: subprocess.Popen[bytes], timeout: float) -> Status:
    """As it is when it stands, when its process has ended, or after this time."""
    from shmbroker.ipc.instance import status
    from shmbroker.ipc.instance.watch import Watch

    ends_at = time.monotonic() + timeout
    watch, child = Watch(folder / status.RUN), os.pidfd_open(process.pid)
    try:
        while True:
            found = status.read(folder)
            is_it = found.process is not None and found.process.pid == process.pid
            left = ends_at - time.monotonic()
            if (is_it and found.state in STANDS) or left <= 0:
                return found
            if process.poll() is not None:
                return of_ended(folder, process.pid)
            ready, _, _ = select.select([watch.file, child], [], [], left)
            if watch.file in ready:
                os.read(watch.file, 1 << 16)
    finally:
        os.close(child)
        watch.close()


def of_ended(folder: Path, pid: int) -> Status:
    """What its status says, if it has shown one; else it is that of one before, or since."""
    from shmbroker.ipc.instance.status import RUN, Status, shown

    found = shown(folder / RUN / "status")
    is_its = found.process is not None and found.process.pid == pid
    return found if found.state == "failed" and is_its else Status()


def last_words(folder: Path) -> str:
    from shmbroker.ipc.base import trust
    from shmbroker.ipc.instance.status import RUN

    text = trust.content_of(folder / RUN / OUTPUT)[-LAST_WORDS_MAX:].decode(errors="replace")
    lines = [visible(line.removeprefix("shmbroker: ")) for line in text.strip().splitlines()]
    return "\n".join(lines)
