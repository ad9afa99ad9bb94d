"""A backup that a broker runs for another node: a child process with a folder of its own.

It ends with who runs it: a thread of it waits for the death of that process.  A crash of one does
not take the other.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import Error, InvalidArgument
from shmbroker.ipc.base.trust import make_folder
from shmbroker.ipc.instance import process, reloading
from shmbroker.ipc.instance.config import config as instance
from shmbroker.ipc.instance.config import masking
from shmbroker.ipc.instance.config.config import FILE, toml_of
from shmbroker.ipc.instance.config.sources import PREFIX
from shmbroker.ipc.instance.creation import make_folders
from shmbroker.ipc.instance.readable import is_readable
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.store import Store
from shmbroker.ipc.instance.whole import read_whole, write_text, write_whole
from shmbroker.netbridge.cluster.hosting import NAME
from shmbroker.netbridge.config import config as networks
from shmbroker.netbridge.config.config import Network
from shmbroker.netbridge.election.question import Node

FOLDER: Final = "colocated"
"""In the folder of who runs them."""
HOST: Final = "host"
"""In the folder of the backup: who runs it, and for whom."""
RELOAD_SECONDS: Final = 5.0
STOP_SECONDS: Final = 20.0
"""A backup that has taken over writes what is there; then it is killed."""
PROGRAM: Final = "import sys; from shmbroker.cli.main import main; sys.exit(main())"


def numbers(folder: Path) -> dict[Node, int]:
    """Of the backups that were here before."""
    found: dict[Node, int] = {}
    for each in sorted((folder / FOLDER).glob(f"{NAME}*")):
        number, node = each.name.removeprefix(NAME), read_whole(each / HOST).get("node")
        if number.isdecimal() and isinstance(node, str):
            with suppress(ValueError):
                found[bytes.fromhex(node)] = int(number)
    return found


class Child:
    """The process."""

    def __init__(self, host: Path, folder: Path, ended: Callable[[int], None]) -> None:
        """`ended`: told its exit code, from another thread."""
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, "run", str(folder)],
            stdin=subprocess.DEVNULL, env=_environment(host), start_new_session=True,
        )  # fmt: skip
        self.pid = self._process.pid

        def wait() -> None:
            ended(self._process.wait())

        threading.Thread(target=wait, name="waits for a hosted backup", daemon=True).start()

    @property
    def code(self) -> int | None:
        """With which it has ended, before that is told."""
        return self._process.returncode

    @property
    def why(self) -> str:
        """Its last words."""
        return str(read_whole(self.folder / RUN / "status").get("why") or "")

    def reload(self, given: Mapping[str, object]) -> None:
        """Its configuration from now on.  InvalidArgument: it does not take it."""
        write_text(self.folder / FILE, toml_of(dict(given)))
        answer = reloading.asked(self.folder, RELOAD_SECONDS)
        why = "it does not answer" if answer is None else answer.get("why")
        if why:
            raise InvalidArgument(str(why))

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Returns when it has ended."""
        self.stop()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def begin(
    host: Path, name: str, for_whom: Node, given: Mapping[str, object],
    ended: Callable[[int], None],
) -> Child:  # fmt: skip
    """Make its folder, and start it; an Error says why it cannot be run."""
    folder = host / FOLDER / name
    config = instance.configured(folder, dict(given))
    network = networks.network(folder, dict(given))
    if config.policy != "replication":
        Store.of(config)
    check_ports(network, has_console=_has_console(folder))
    make_folder(host / FOLDER)
    make_folders(config)
    me = asdict(process.this())
    write_whole(folder / HOST, {"process": me, "host": host.name, "node": for_whom.hex()})
    write_text(folder / FILE, toml_of(dict(given)))
    key, own = host / masking.FILE, folder / masking.FILE
    if key.exists() and not own.is_symlink():
        own.symlink_to(key)
    return Child(host, folder, ended)


def _environment(host: Path) -> dict[str, str]:
    """What it says of options stands in the file of the backup, and is not for it."""
    sources = set(networks.layers(host).sources.values())
    ours = {each for each in sources if each.startswith(PREFIX)}
    return {name: each for name, each in os.environ.items() if name not in ours}


def _has_console(folder: Path) -> bool:
    """That of a backup that was killed goes on, and ends when the next one begins."""
    found = process.told_in(read_whole(folder / RUN / "console"))
    return found is not None and not found.has_ended


def check_ports(network: Network, *, has_console: bool = False) -> None:
    """InvalidArgument if one is taken."""
    for each in network.acceptors.values():
        _check_port(None if each.uri.is_anywhere else each.uri.host, each.uri.port)
    if network.console is not None and network.console.port and not has_console:
        _check_port(network.console.host, network.console.port)


def _check_port(host: str | None, port: int) -> None:
    tried_at = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, number, _, address = tried_at[0]
    with closing(socket.socket(family, kind, number)) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(address)
        except OSError as error:
            raise InvalidArgument(f"port {port} is not free there: {error.strerror}") from None


def ends_with_host(folder: Path) -> None:
    """If this is the folder of a hosted backup, or its console; Error if who runs it is not
    there."""
    told = read_whole(folder / HOST)
    if not told:
        return
    found = process.told_in(told)
    file = None if found is None else found.descriptor()
    if file is None:
        raise NoHost(
            f"{folder} is a backup that the broker {told.get('host')!r} runs, which is not there: "
            "start that one"
        )

    def wait(file: int = file) -> None:
        is_readable(file)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="ends with its host", daemon=True).start()


class NoHost(Error):
    """A hosted backup was started by somebody else."""
