"""A PostgreSQL of our own: in a folder that goes with it, on a port and a socket."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shmbroker.perf.machine.port import free_port

if TYPE_CHECKING:
    import psycopg

PATIENCE_SECONDS = 60
PASSWORD = "correct horse battery"
LOOPBACK = "127.0.0.1"
PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl

SETTINGS = {
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "200",
    "dynamic_shared_memory_type": "mmap",  # nothing in /dev/shm, also if it is killed
    "autovacuum": "off",
}


def programs() -> Path:
    """Skips the test if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    other = shutil.which("postgres")
    if not found and other is None:
        pytest.skip("needs PostgreSQL: sudo apt-get install postgresql (tools/postgres)")
    return (found[-1] if found else Path(str(other))).parent


def dies_with_us() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def is_killed_with_us() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Postgres:
    def __init__(self, primary: Postgres | None = None, address: str = LOOPBACK) -> None:
        """`primary`: it is a standby of that one, until it is promoted."""
        self.programs = programs()
        self.address = address
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="shmbroker-postgres-"))
        # it refuses to run as root
        names = [each.pw_name for each in pwd.getpwall()]
        self.user = "postgres" if "postgres" in names else "nobody"
        self.privileges: dict[str, Any] = {}
        if os.geteuid() == 0:
            of = pwd.getpwnam(self.user)
            os.chown(self.folder, of.pw_uid, of.pw_gid)
            self.privileges = {"user": of.pw_uid, "group": of.pw_gid, "extra_groups": []}
        if primary is None:
            (self.folder / "password").write_text(PASSWORD)
            self._do("initdb", "--no-sync", "-E", "UTF8", "--locale=C", "-U", "broker",
                     "--auth-local=trust", "--auth-host=scram-sha-256",
                     f"--pwfile={self.folder / 'password'}")  # fmt: skip
            with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {address}/24 scram-sha-256\n")
        else:
            self._do("pg_basebackup", "--no-sync", "-R", "-X", "stream", "-c", "fast", "-U",
                     "broker", "-h", str(primary.folder), "-p", str(primary.port))  # fmt: skip
        self.server: subprocess.Popen[bytes] | None = None
        self.start()

    def _do(self, program: str, *words: str) -> None:
        command = [str(self.programs / program), "-D", str(self.folder / "data"), *words]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, **self.privileges
        )
        assert done.returncode == 0, done.stderr

    @property
    def url(self) -> str:
        return f"postgresql://broker@{self.address}:{self.port}/postgres"

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        return psycopg.connect(self.url, password=PASSWORD, autocommit=True)

    def start(self) -> None:
        import psycopg

        given = SETTINGS | {"listen_addresses": self.address}
        settings = [word for item in given.items() for word in ("-c", "=".join(item))]
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.folder / "data"),
                 "-p", str(self.port), "-k", str(self.folder), *settings],
                cwd=self.folder, stdout=log, stderr=log, preexec_fn=dies_with_us,
                **self.privileges,
            )  # fmt: skip
        ends_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < ends_at, (self.folder / "log").read_text()
                time.sleep(0.02)

    def _pids(self) -> list[int]:
        """Its own, and those of its children: who is connected has one for himself."""
        assert self.server is not None
        pid = self.server.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def _send(self, number: signal.Signals) -> None:
        for pid in self._pids():
            with suppress(ProcessLookupError):  # a child ends with its connection
                os.kill(pid, number)

    def promote(self) -> None:
        """It is no standby any more."""
        self._do("pg_ctl", "promote", "-w")

    def pause(self) -> None:
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        assert self.server is not None
        self._send(signal.SIGKILL)
        self.server.wait()

    def stop(self) -> None:
        """At once, whoever is connected."""
        if self.server is not None and self.server.poll() is None:
            self.go_on()
            self.server.send_signal(signal.SIGINT)
            self.server.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)
