"""The two brokers of a pair as processes on one host, and one of them with a peer of the test."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import shmbroker
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.pair.told import Activation, State, Told
from shmbroker.netbridge.paired.talks import Talks
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import PAIR_LINK, Role, Standing
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.runs import Run

PASSWORD = "correct horse battery staple"
PATIENCE = 60.0
SHM = "prefer-shared-memory=false"
NAMES = ("one", "two")
"""The primary and the backup."""
OPTIONS = {"one": "primary", "two": "backup"}


def waits(run: Run, **wanted: str) -> dict[str, Any]:
    """Until `status` shows that of the pair."""
    watch = Watch(run.folder / status.RUN)
    until = time.monotonic() + PATIENCE
    try:
        while True:
            found = read_whole(run.folder / status.RUN / "pair")
            if all(found.get(name) == each for name, each in wanted.items()):
                return found
            assert time.monotonic() < until, f"{found} {run.said()} {run.errors()}"
            watch.wait(until - time.monotonic())
    finally:
        watch.close()


def reasons(run: Run) -> list[tuple[str, str]]:
    """States of the pair, and why."""
    return [
        (each["state"], each["why"])
        for each in run.said()
        if each["event"] == "pair" and "why" in each
    ]


def settings(place: str) -> dict[str, object]:
    """Of either broker, without its part in the pair."""
    return {
        "store.path": "data",
        "ha.policy": "pair",
        "ha.pair.vhost": "/",
        "ha.pair.credentials": "pair",
        "ha.pair.failover-timeout": "1s",
        "acceptors.all.uri": f"tcp://{place}",
        "acceptors.all.roles": ["client", "peering", "viewer"],
        "acceptors.all.credentials": "programs",
        "credentials.pair.password": PASSWORD,
        "credentials.pair.role": "peering",
        "credentials.programs.password": PASSWORD,
    }


@dataclass
class Duo:
    runs: dict[str, Run]
    vhosts: dict[str, str]
    ports: dict[str, int]
    opened: ExitStack
    addresses: Mapping[str, str]

    def __getitem__(self, name: str) -> Run:
        return self.runs[name]

    def up(self) -> Duo:
        for each in self.runs.values():
            each.start()
        waits(self["one"], pair="active", peer="passive")
        waits(self["two"], pair="passive", peer="active")
        return self

    def address(self, name: str) -> str:
        return f"tcp://{self.addresses[name]}:{self.ports[name]}"

    def uri(self, *names: str, more: str = "") -> str:
        members = ",".join(self.address(each) for each in names)
        pace = "max-reconnect-delay=50ms&startup-max-reconnect-attempts=-1"
        return f"failover:({members})?randomize=false&{pace}&{SHM}{more}"

    def program(self, *names: str, more: str = "") -> Any:
        """Waits until it is accepted."""
        made = shmbroker.connect(
            self.uri(*(names or NAMES), more=more), user="programs", password=PASSWORD
        )
        self.opened.callback(made.close)
        return made

    def tries(self, name: str, vhost: str = "") -> None:
        """Once: raises if it is refused."""
        times = f"connect-timeout={PATIENCE:g}s&handshake-timeout={PATIENCE:g}s"
        uri = f"{self.address(name)}/{vhost}?{times}&{SHM}"
        shmbroker.connect(uri, user="programs", password=PASSWORD).close()

    def resets(self, name: str) -> str:
        answer = ordering.asked(self[name].folder, {"noun": "ha", "verb": "reset"}, PATIENCE)
        assert answer is not None
        return str(answer.get("why", ""))

    def stands_still(self, name: str) -> None:
        process = self[name].process
        assert process is not None
        process.stop()

    def goes_on(self, name: str) -> None:
        process = self[name].process
        assert process is not None
        process.go_on()

    def silent(self, name: str) -> None:
        """Until the other one has been silent for longer than it may be."""
        until = time.monotonic() + PATIENCE
        while True:
            assert ordering.asked(self[name].folder, {"noun": "ha", "verb": "show"}, PATIENCE), (
                self[name].said()
            )
            found = read_whole(self[name].folder / status.RUN / "pair")
            if found["silence"] > 1.0:
                return
            assert time.monotonic() < until, found
            time.sleep(1.0 - found["silence"] + 0.01)


    def linked(self, name: str, *, is_so: bool = True) -> None:
        """Until it is, or is not; the file is written when somebody asks."""
        until = time.monotonic() + PATIENCE
        while True:
            assert ordering.asked(self[name].folder, {"noun": "ha", "verb": "show"}, PATIENCE)
            if read_whole(self[name].folder / status.RUN / "pair")["linked"] is is_so:
                return
            assert time.monotonic() < until, self[name].said()
            time.sleep(0.05)


Made = Callable[..., Duo]


LOCAL: Final = dict.fromkeys(NAMES, "127.0.0.1")


@pytest.fixture
def duo(tmp_path: Path) -> Iterator[Made]:
    """`more`: options of both; `one`, `two`: of one."""
    with duos(tmp_path, LOCAL) as made:
        yield made


@contextmanager
def duos(tmp_path: Path, addresses: Mapping[str, str]) -> Iterator[Made]:
    with ExitStack() as opened:
        vhosts = {name: opened.enter_context(vhost_for_a_while()) for name in NAMES}
        ports = {name: free_port() for name in NAMES}

        def made(more: dict[str, object] | None = None, **of_one: dict[str, object]) -> Duo:
            runs = {}
            for name, other in (NAMES, NAMES[::-1]):
                given: dict[str, object] = {
                    **settings(f"{addresses[name]}:{ports[name]}"),
                    f"ha.pair.is-{OPTIONS[name]}": True,
                    f"ha.pair.{OPTIONS[other]}-peer": f"{addresses[other]}:{ports[other]}",
                    **(more or {}), **of_one.get(name, {}),
                }  # fmt: skip
                runs[name] = Run(tmp_path / name, vhosts[name], "live", given)
                opened.callback(runs[name].kill)
            return Duo(runs, vhosts, ports, opened, addresses)

        yield made


class Puppet:
    """The other one of a real broker: it says what the test wants, and nothing else."""

    def __init__(self, run: Run, *, is_primary: bool, port: int, other: int) -> None:
        self.run = run
        self.thread = NetworkThread()
        self.talks = Talks(self, lambda _: None, is_primary=is_primary)
        self._ours = Identity(os.urandom(16), os.urandom(16), "puppet", Standing.LIVE, 1)
        self._key = Stretched("programs", PASSWORD)
        self._credential = Credential(
            "pair", "pair", (Role.PEERING,), (Stretched("pair", PASSWORD),)
        )
        self._what = Told(State.PENDING, Activation(7, 0))
        if is_primary:
            self._listens(port)
        else:
            self._dials(other)

    def _listens(self, port: int) -> None:
        self._end = Listener(
            self.thread, f"tcp://127.0.0.1:{port}", self._key, Credentials([self._credential]),
            self._ours, pairs=self.talks,
        )  # fmt: skip

    def _dials(self, port: int) -> None:
        pin = public_of(self._key.listening).hex()
        pace = "initial-reconnect-delay=20ms&max-reconnect-delay=50ms"
        self._end = Dialled(
            self.talks, self.thread, PAIR_LINK,
            f"failover:(tcp://127.0.0.1:{port}?key={pin})?{pace}",
            self._credential, self._ours, (), role=Role.PEERING,
        )  # fmt: skip

    def linked(self) -> None:
        self.talks.say(self._what)

    def told(self, what: Told) -> None:
        """`status` of the broker shows what it is."""

    def says(self, state: State) -> None:
        self._what = Told(state, Activation(7, self._what.activation.number + 1))
        self.thread.ask(lambda: self.talks.say(self._what))

    def sees(self, *steps: tuple[State, State]) -> None:
        """Each: what it says, and what the broker is then."""
        for said, is_then in steps:
            self.says(said)
            waits(self.run, pair=is_then.value, peer=said.value)

    def close(self) -> None:
        self._end.close()
        self.thread.close()


@pytest.fixture
def puppet(duo: Made) -> Iterator[Callable[[str], Puppet]]:
    """Of the broker with this name, which it starts."""
    with ExitStack() as opened:

        def made(name: str) -> Puppet:
            two = duo()
            two[name].start()
            other = "two" if name == "one" else "one"
            puppet = Puppet(
                two[name], is_primary=name == "two", port=two.ports[other], other=two.ports[name]
            )
            opened.callback(puppet.close)
            waits(two[name], peer="pending")
            return puppet

        yield made


def of(run: Run) -> Mapping[str, Any]:
    return read_whole(run.folder / status.RUN / "pair")
