"""Three ZooKeeper servers of our own, in folders that go with them, at one address."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shmbroker.perf.machine.port import free_port
from tests.support.postgres import LOOPBACK, is_killed_with_us

PATIENCE_SECONDS = 60
JAR = Path("/usr/share/java/zookeeper.jar")
TICK_MS = 100
"""Sessions are of 2 to 20 ticks, unless said otherwise."""
SESSION_MS_MAX = 60_000
QUICK = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
LOG = """\
log4j.rootLogger=WARN, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d %p %m%n
"""


@dataclass
class Server:
    folder: Path
    address: str
    port: int = field(default_factory=free_port)
    peer_port: int = field(default_factory=free_port)
    election_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["java", *QUICK, "-Dzookeeper.admin.enableServer=false",
                 "-Dzookeeper.4lw.commands.whitelist=srvr", "-cp", f"{self.folder}:{JAR}",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.folder / "zoo.cfg")],
                stdout=log, stderr=log, preexec_fn=is_killed_with_us,
            )  # fmt: skip

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    @property
    def serves(self) -> bool:
        """It is one of a majority."""
        try:
            with socket.create_connection((self.address, self.port), 1) as asked:
                asked.sendall(b"srvr")
                return b"Mode:" in asked.recv(4096)
        except OSError:
            return False


class Ensemble:
    def __init__(self, address: str = LOOPBACK) -> None:
        if not JAR.exists() or shutil.which("java") is None:
            pytest.skip("needs ZooKeeper: sudo apt-get install zookeeper (tools/zookeeper)")
        self.folder = Path(tempfile.mkdtemp(prefix="shmbroker-zookeeper-"))
        self.servers = [Server(self.folder / str(number), address) for number in (1, 2, 3)]
        lines = [
            f"tickTime={TICK_MS}", "initLimit=100", "syncLimit=20", "maxClientCnxns=0",
            f"maxSessionTimeout={SESSION_MS_MAX}", "forceSync=no",
            *(f"server.{number}={address}:{each.peer_port}:{each.election_port}"
              for number, each in enumerate(self.servers, 1)),
        ]  # fmt: skip
        for number, each in enumerate(self.servers, 1):
            each.folder.mkdir()
            (each.folder / "myid").write_text(f"{number}\n")
            (each.folder / "log4j.properties").write_text(LOG)
            own = [f"dataDir={each.folder}", f"clientPort={each.port}",
                   f"clientPortAddress={address}"]  # fmt: skip
            (each.folder / "zoo.cfg").write_text("\n".join([*lines, *own, ""]))
        self.start()

    @property
    def connect(self) -> str:
        return ",".join(f"{each.address}:{each.port}" for each in self.servers)

    def start(self) -> None:
        """Those that do not run."""
        for each in self.servers:
            if each.process is None:
                each.start()
        late = time.monotonic() + PATIENCE_SECONDS
        while not all(each.serves for each in self.servers):
            assert time.monotonic() < late, self.errors()
            time.sleep(0.05)

    def errors(self) -> str:
        return "\n".join((each.folder / "log").read_text()[-2000:] for each in self.servers)

    def close(self) -> None:
        for each in self.servers:
            each.kill()
        shutil.rmtree(self.folder)
