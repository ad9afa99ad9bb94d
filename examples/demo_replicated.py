"""make demo-replicated: two brokers without a shared disk, and a witness.

    publisher ──TCP──►  live  ──each frame of its journal──►  backup
    consumer  ◄──TCP──   │                                      │
                         └───────────►  witness  ◄──────────────┘

The live is killed, the backup takes over, the live comes back and fails back; then it is stopped in
good order.  Publisher and consumer are remote clients with both addresses.  At the end every
confirmed message is accounted for by its number.

Each broker has a console: that of the live shows queues and messages, that of the backup the node
only, until it takes over.  --seconds 60 gives you time to look.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import shmbroker
from shmbroker import vhost
from shmbroker.perf.machine.port import free_port

COMMAND = str(Path(sys.executable).parent / "shmbroker")
QUEUE = "orders"
USER = "programs"
PASSWORD = "a password for this demo"
PATIENCE_S = 120
CONSOLE_S = 30
"""It needs the extra `console`."""
NAMES = ("live", "backup")


class Story:
    """The brokers, the witness, and what happened when."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vhosts = {name: f"demo-{name}-{os.getpid()}" for name in NAMES}
        *ports, self.voting = (free_port() for _ in range(7))
        self.members = dict(zip(NAMES, ports[:2], strict=True))
        self.ports = dict(zip(NAMES, ports[2:4], strict=True))
        self.consoles = dict(zip(NAMES, ports[4:], strict=True))
        self.environment = os.environ | {"XDG_CONFIG_HOME": str(folder)}  # not your contexts
        self.begun = time.monotonic()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def uri(self) -> str:
        members = ",".join(f"tcp://127.0.0.1:{port}" for port in self.ports.values())
        return f"failover:({members})?randomize=false&prefer-shared-memory=false"

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:7.3f} s  {text}", flush=True)

    def do(self, *words: str) -> str:
        done = subprocess.run(
            [COMMAND, *words], cwd=self.folder, capture_output=True, text=True, check=False,
            env=self.environment,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"shmbroker {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def create(self, name: str) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o600)
        members = ", ".join(f'"{each}=tcp://127.0.0.1:{self.members[each]}"' for each in NAMES)
        settings = {
            "ha.policy": "replication",
            "ha.members": f"[{members}]",
            "ha.replication.witnesses": f'["tcp://127.0.0.1:{self.voting}"]',
            "ha.replication.vote-retry-wait": "200ms",
            "ha.replication.check-for-live-server": "true",
            "ha.replication.replica-timeout": "10s",  # patient with a machine that is busy
            "link-defaults.heartbeat-interval": "1s",
            "acceptors.members.uri": f"tcp://127.0.0.1:{self.members[name]}",
            "acceptors.members.roles": '["replica"]',
            "acceptors.programs.uri": f"tcp://127.0.0.1:{self.ports[name]}",
            "acceptors.programs.roles": '["client"]',
            "console.listen": f"127.0.0.1:{self.consoles[name]}",
        }
        for whose, role in (("members", "replica"), (USER, "client"), ("votes", "witness")):
            settings[f"credentials.{whose}.password"] = f'{{ file = "{secret}" }}'
            settings[f"credentials.{whose}.role"] = role
        given = [word for pair in settings.items() for word in ("--set", "=".join(pair))]
        self.do("create", name, "--vhost", self.vhosts[name], "--role", name, *given)

    def run(self, name: str) -> None:
        self._begin(name, "run", name)

    def run_witness(self) -> None:
        folder = self.folder / "witness"
        folder.mkdir(mode=0o700)
        place = folder / "shmbroker.toml"
        place.write_text(f'[credentials.votes]\npassword = "{PASSWORD}"\nrole = "witness"\n')
        place.chmod(0o600)
        listen = f"tcp://127.0.0.1:{self.voting}"
        self._begin("witness", "witness", "run", "--listen", listen, "--state", str(folder))

    def _begin(self, name: str, *words: str) -> None:
        self.processes[name] = subprocess.Popen(
            [COMMAND, *words], cwd=self.folder, stdout=subprocess.DEVNULL
        )

    def tell_console(self, name: str) -> None:
        """Its address, with a link that is good once; it begins beside the broker."""
        ends_at = time.monotonic() + CONSOLE_S
        while True:
            try:
                link = self.do("console", "open", name).strip()
                break
            except RuntimeError as error:
                if time.monotonic() > ends_at:
                    self.tell(f"{name} has no console: {error}")
                    return
            time.sleep(0.1)
        self.tell(f"the console of {name}, while this runs: {link}")

    def awaits(self, name: str, state: str) -> None:
        self.do("status", name, "--wait", state, "--timeout", f"{PATIENCE_S}s")

    def awaits_sync(self, name: str) -> None:
        ends_at = time.monotonic() + PATIENCE_S
        expected = ["ha", "status", name, "--expect", "in sync"]
        while True:
            with suppress(RuntimeError):
                self.do(*expected)
                return
            if time.monotonic() > ends_at:
                raise RuntimeError(f"{name} is not in sync")
            time.sleep(0.1)

    def end(self) -> None:
        for each in self.processes.values():
            each.kill()
            each.wait()
        for name in NAMES:
            with suppress(RuntimeError):  # of a broker that was killed it would stay
                self.do("console", "stop", name)
        for name in self.vhosts.values():
            if vhost.exists(name):
                vhost.delete(name, force=True)


@contextmanager
def story() -> Iterator[Story]:
    with tempfile.TemporaryDirectory() as folder:
        made = Story(Path(folder))
        try:
            yield made
        finally:
            made.end()


class Programs:
    """A publisher that waits for each confirm, and a consumer; each with its own connection."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.confirmed: list[tuple[int, float]] = []
        """Numbers, and how long each took."""
        self.taken: Counter[int] = Counter()
        self.flagged = 0
        self.failures: list[BaseException] = []
        self._is_over = threading.Event()
        self._are_there = threading.Barrier(3)
        self._threads = [
            threading.Thread(target=self._guarded, args=(step,))
            for step in (self._publish, self._consume)
        ]

    def begin(self) -> None:
        with self._connected() as broker:
            broker.declare_queue(QUEUE, durable=True)
        for each in self._threads:
            each.start()
        self._are_there.wait(PATIENCE_S)

    def end(self) -> None:
        self._is_over.set()
        for each in self._threads:
            each.join()

    def _connected(self) -> Any:
        return shmbroker.connect(self.uri, user=USER, password=PASSWORD)

    def _guarded(self, step: Any) -> None:
        try:
            step()
        except BaseException as error:  # noqa: BLE001 - told at the end
            self.failures.append(error)

    def _publish(self) -> None:
        with self._connected() as broker:
            queue = broker.queue(QUEUE)
            self._are_there.wait(PATIENCE_S)
            while not self._is_over.is_set():
                number, begun = len(self.confirmed), time.monotonic()
                queue.publish(b"%d" % number, timeout=PATIENCE_S)
                self.confirmed.append((number, time.monotonic() - begun))

    def _consume(self) -> None:
        with self._connected() as broker:
            queue = broker.queue(QUEUE)
            self._are_there.wait(PATIENCE_S)
            while True:
                try:
                    message = queue.get(timeout=1)
                except shmbroker.Empty:
                    if self._is_over.is_set():
                        return
                    continue
                number, is_again = int(message.body), message.redelivered
                with suppress(shmbroker.DeliveryRevoked):  # it comes again, flagged
                    message.ack()
                self.flagged += is_again
                if not (is_again and number in self.taken):
                    self.taken[number] += 1


def perform(play: Story, seconds: float) -> bool:
    for name in NAMES:
        play.create(name)
    play.begun = time.monotonic()
    play.run_witness()
    play.run("live")
    play.awaits("live", "live")
    play.tell("the live is live, and alone")
    play.run("backup")
    play.awaits_sync("backup")
    play.awaits_sync("live")
    play.tell("the backup is in sync: from now on a confirm means disk and replica")
    for name in NAMES:
        play.tell_console(name)
    programs = Programs(play.uri)
    programs.begin()
    time.sleep(seconds)
    play.tell("kill -9 of the live")
    play.do("kill", "live")
    play.awaits("backup", "live")
    play.tell("the witness has granted the backup the next epoch: it is live")
    time.sleep(seconds)
    play.tell("the old live is started again: it syncs, and asks for its role")
    play.run("live")
    play.awaits("live", "live")
    play.awaits_sync("backup")
    play.tell("it is live again, and the backup is in sync")
    time.sleep(seconds)
    play.tell("the live is stopped in good order: it hands over")
    play.do("stop", "live")
    play.awaits("backup", "live")
    play.tell("the backup is live")
    time.sleep(seconds)
    programs.end()
    return account(programs)


def account(programs: Programs) -> bool:
    confirmed = {number for number, _ in programs.confirmed}
    lost = len(confirmed - programs.taken.keys())
    twice = sum(1 for times in programs.taken.values() if times > 1)
    took = sorted(seconds for _, seconds in programs.confirmed)
    print(f"\nconfirmed {len(confirmed):,}   lost {lost}   twice without a flag {twice}"
          f"   delivered again, flagged {programs.flagged}")  # fmt: skip
    print(f"publish until it is confirmed: p50 {took[len(took) // 2] * 1e3:.2f} ms, "
          f"longest {took[-1] * 1e3:.0f} ms")  # fmt: skip
    for failure in programs.failures:
        print(f"a program has ended: {failure!r}")
    return not lost and not twice and not programs.failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2, help="between two events; default 2")
    seconds = parser.parse_args().seconds
    with story() as play:
        well = perform(play, seconds)
    print("\nnothing is lost" if well else "\nSOMETHING IS LOST OR DUPLICATED")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
