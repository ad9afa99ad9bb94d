"""The process of a witness: its state, its listener, its log, and what it shows of itself.

DIR/shmbroker.toml   [credentials.NAME] with role "witness"; [security], [link-defaults]
DIR/ledgers, lock    what it has granted (state.py)
DIR/witness.log      a line of JSON for each change
DIR/status           where it listens, and who has a link
"""

from __future__ import annotations

import difflib
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zmq

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance import interpreter
from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.ipc.instance.latest import Latest
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.lines import Lines
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.config.config import Network, layers, network
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.wire.words import Role, Standing
from shmbroker.netbridge.witness import state
from shmbroker.netbridge.witness.witness import Witness

TABLES: Final = ("credentials", "security", "link-defaults")
ACCEPTOR: Final = "witness"
STATUS: Final = "status"
LOG: Final = "witness.log"


@dataclass(frozen=True, slots=True)
class Options:
    folder: Path
    network: Network
    credentials: Credentials
    warnings: tuple[str, ...]


def configured(folder: Path, listen: str) -> Options:
    """ConfigError and the like say what is missing."""
    folder = folder.absolute()
    if not (folder / FILE).exists():
        raise ConfigError(
            f"{folder} has no {FILE}: write one with [credentials.NAME], user, password and "
            'role = "witness", as the members have it'
        )
    values = layers(folder).values
    for key in values:
        table = key.partition(".")[0]
        if table not in TABLES:
            meant = difflib.get_close_matches(table, TABLES, 1)
            hint = f"; did you mean [{meant[0]}]?" if meant else ""
            raise ConfigError(f"{folder / FILE}: a witness has no [{table}]{hint}")
    acceptor = {"uri": listen, "roles": [Role.WITNESS.value]}
    found = network(
        folder, values | {f"acceptors.{ACCEPTOR}.{key}": each for key, each in acceptor.items()}
    )
    known, warnings = credentials(found)
    return Options(folder, found, known, warnings)


class WitnessProcess(Closable):
    def __init__(self, options: Options, cannot_go_on: Callable[[], None]) -> None:
        self.folder = options.folder
        self.failure = ""
        """Its state cannot be written, or its network thread has ended."""
        self._cannot_go_on = cannot_go_on
        interpreter.shares_often()
        self._state = state.State(self.folder, secrets.token_bytes(16))
        self._log = Log(self.folder / LOG, "witness")
        self._lines = Lines(self._log.write, time.monotonic)
        self._thread = NetworkThread()
        self._showing = Latest("shows")
        """To replace a file may wait for the disk, and a live that is lost shows itself there."""
        self._links: list[tuple[Node, str]] = []
        self.address = ""
        self._witness = Witness(
            self._thread, self._state, tell=self._lines.tell, failed=self._failed, shows=self._show
        )
        try:
            self._listener = self._listen(options)
        except BaseException:
            self._witness.close()
            self._thread.close()
            self._showing.close()
            self._state.close()
            raise
        self.address = self._listener.address
        self._log.write("witness", level="info", state="listening", detail=self.address)
        self._showing.say(STATUS, self._write_status)
        self._showing.wait()
        interpreter.keeps_what_is_there()
        self._thread.tell_failure(self._fails)

    def _listen(self, options: Options) -> Listener:
        given = Given(options.network, options.credentials)
        acceptor = options.network.acceptors[ACCEPTOR]
        self._thread.admit(given.credentials.known_keys)
        ours = Identity(self._state.identity, os.urandom(16), "witness", Standing.NONE, 0)
        address = f"tcp://{acceptor.uri.peer}"
        try:
            return Listener(
                self._thread, address, given.key_of(acceptor), options.credentials, ours,
                roles=frozenset(acceptor.roles), times=times_of(options.network.link_defaults),
                votes=self._witness, tell=self._lines.tell,
            )  # fmt: skip
        except zmq.ZMQError as error:
            raise SystemRefused(f"cannot listen on {address}: {error}") from None

    def close(self) -> None:
        if self._thread.failure is None:
            self._listener.close()
        self._witness.close()
        self._thread.close()
        self._showing.close()
        self._state.close()
        self._log.write("witness", level="info", state="stopped", detail="")

    def _failed(self, error: Exception) -> None:
        self._fails(f"{told(error)}: a witness that forgets is none")

    def _fails(self, why: str) -> None:
        self.failure = why
        self._log.write("witness", level="error", state="failed", detail=why)
        self._cannot_go_on()

    def _show(self, links: list[tuple[Node, str]]) -> None:
        """In the network thread, which answers meanwhile."""
        self._links = links
        if self.address:
            self._showing.say(STATUS, self._write_status)

    def _write_status(self) -> None:
        write_whole(self.folder / STATUS, {
            "listen": self.address,
            "links": [[node.hex(), member] for node, member in self._links],
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class Status:
    process: int | None
    listen: str
    identity: bytes
    ledgers: dict[Node, Ledger]
    links: dict[Node, list[str]]


def status(folder: Path) -> Status:
    """Of a witness that runs, or has run; StateDamaged, ConfigError."""
    identity, ledgers = state.read(folder)
    process = state.runs(folder)
    shown: dict[str, Any] = read_whole(folder / STATUS) if process is not None else {}
    if not identity and process is None:
        raise ConfigError(f"{folder} is no state of a witness: shmbroker witness run makes one")
    links: dict[Node, list[str]] = {}
    for node, member in shown.get("links", []):
        links.setdefault(bytes.fromhex(node), []).append(member)
    return Status(process, str(shown.get("listen", "")), identity, ledgers, links)
