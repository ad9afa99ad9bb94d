"""The process of a console: one for each instance, by a lock in run/, until it is told to end.

console.lock   locked for as long as it runs
console        JSON: its process, and where it listens
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Error, InUse, SystemRefused
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance import process
from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.process import Process
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.broker.whereabouts import address
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.config.logins import credentials

if TYPE_CHECKING:
    from shmbroker.cli.console.application import Application
    from shmbroker.cli.console.refusal import Refusals
    from shmbroker.netbridge.config.console import Console

LOCK: Final = "console.lock"
SHOWN: Final = "console"
RELOAD: Final = signal.SIGHUP
END_SECONDS: Final = 1
BACKLOG: Final = 64
CONNECTIONS_MAX: Final = 200


def running(folder: Path) -> tuple[Process, str] | None:
    """Its process and its address; None: there is none."""
    shown = read_whole(folder / RUN / SHOWN, trust.seen_files())
    found = process.told_in(shown)
    url = shown.get("url")
    if found is None or found.has_ended or not isinstance(url, str):
        return None
    return found, url


def listening(console: Console) -> socket.socket:
    """SystemRefused: the address is not there, or another process has it."""
    family = socket.AF_INET6 if ":" in console.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((console.host, console.port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise SystemRefused(
            f"the console cannot listen on {console.host}:{console.port}: {error.strerror}: see "
            "who has it by ss -ltnp, or set console.listen"
        ) from error
    return made


def run(folder: Path, flags: Mapping[str, object]) -> None:
    """Until SIGTERM.  InUse: there is one already."""
    config, network = load(folder, flags)
    console = network.console
    if console is None:
        raise SystemRefused(f"{folder} has no [console]: docs/console.md")
    log = Log(config.log, config.name)
    trust.make_folder(config.folder / RUN)
    lock = trust.opened(config.folder / RUN / LOCK, os.O_RDWR | os.O_CREAT)
    if not ofd.try_lock(lock, 0):
        os.close(lock)
        raise InUse(f"the console of {folder} runs already: shmbroker console status {folder}")
    try:
        known, _ = credentials(network, console.credentials)
        with listening(console) as made:
            port = made.getsockname()[1]
            url = address(console.host, port, is_secure=console.is_secure)
            from shmbroker.cli.console.application import Application

            application = Application(config, network, console, known, port, log)
            reads = partial(_read_again, folder, flags, application, log, threading.Lock())
            signal.signal(RELOAD, lambda *_: threading.Thread(target=reads, daemon=True).start())
            shown = {"process": asdict(process.this()), "url": url}
            write_whole(config.folder / RUN / SHOWN, shown)
            log.write("console", url=url)
            _serve(application, console, made)
            application.refusals.close()
    except SystemRefused as error:
        log.write("console failed", why=str(error))
        raise
    finally:
        os.close(lock)
    log.write("console ended", url=url)


def _read_again(
    folder: Path, flags: Mapping[str, object], application: Application, log: Log,
    turn: AbstractContextManager[object],
) -> None:  # fmt: skip
    """Who may log in; all else of [console] needs a restart of the broker.

    One reads after the other, so what counts at last was read last.
    """
    with turn:
        try:
            _, network = load(folder, flags)
            names = () if network.console is None else network.console.credentials
            application.knows(credentials(network, names)[0], names)
        except (Error, OSError) as error:
            log.write("console reload refused", why=told(error))
        else:
            log.write("console reloaded")


class _ToLog(logging.Handler):
    """What uvicorn has to say goes where people look."""

    def __init__(self, refusals: Refusals) -> None:
        super().__init__(logging.WARNING)
        self._refusals = refusals

    def emit(self, record: logging.LogRecord) -> None:
        self._refusals.warn(str(record.msg).strip(), self.format(record))


def _serve(application: Application, console: Console, made: socket.socket) -> None:
    import uvicorn

    from shmbroker.cli.console.connection import Connection

    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [_ToLog(application.refusals)], False
    logger.setLevel(logging.WARNING)
    config = uvicorn.Config(
        application.guard, http=Connection, ws="none", loop="asyncio", lifespan="off",
        log_config=None, access_log=False, proxy_headers=False, server_header=False,
        limit_concurrency=CONNECTIONS_MAX, timeout_graceful_shutdown=END_SECONDS,
        ssl_certfile=console.certificate, ssl_keyfile=console.key,
    )  # fmt: skip
    server = uvicorn.Server(config)

    def ends(_number: int, _frame: FrameType | None) -> None:
        """Before uvicorn looks at signals itself; it raises them anew when it has ended."""
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ends)
    server.run(sockets=[made])
