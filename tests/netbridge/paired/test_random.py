"""A pair on hosts of its own under random blows, with applications that use the right and the wrong
order: two accept at once only after a partition or a pause, and that ends as configured.

Hosts are network namespaces, so this is for root.  PAIRED_SEEDS=50 has so many schedules,
PAIRED_BLOWS=10 strikes so often in each.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import product
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Error
from shmbroker.ipc.instance.status import NotRunning
from shmbroker.netbridge.wire.words import PAIR_LINK
from tests.netbridge.paired.conftest import NAMES, PASSWORD, PATIENCE, SHM, Duo, duos, of
from tests.support.hosts import Rack, has_hosts, rack
from tests.support.runs import Run

pytestmark = pytest.mark.skipif(not has_hosts(), reason="network namespaces are for root")
SEEDS = int(os.environ.get("PAIRED_SEEDS", "2"))
BLOWS = int(os.environ.get("PAIRED_BLOWS", "6"))
ORDERS = NAMES, NAMES[::-1]
SLACK = 0.1
"""Seconds: a line is written a moment after what it tells."""
AFTERMATH = 10.0
"""After a cut a connection may be silent for as long again, until it is sent anew or replaced."""
STABLE_SECONDS = 3.0
"""Longer than the silence after which a link counts as lost."""
BOTH_WERE_ACTIVE = "both were active"


@dataclass
class Active:
    """A time in which a broker accepted applications."""

    since: float
    why: str
    until: float = float("inf")
    ended: str = "its process ended"


def times_of(run: Run, ends: list[float]) -> list[Active]:
    """`ends`: when its process was ended; one that stops says so first, and accepts nobody then."""
    found: list[Active] = []
    for line in run.said():
        if (line["event"], line.get("link"), line.get("state")) == ("link", PAIR_LINK, "stopped"):
            if found and found[-1].until == float("inf"):
                found[-1].until = datetime.fromisoformat(line["time"]).timestamp()
        if line["event"] != "pair" or "why" not in line:
            continue
        at = datetime.fromisoformat(line["time"]).timestamp()
        if found and found[-1].until > at:
            if line["why"] == "started":
                since = found[-1].since
                found[-1].until = min(end for end in ends if since <= end <= at + SLACK)
            else:
                found[-1].until, found[-1].ended = at, line["why"]
        if line["state"] == "active":
            found.append(Active(at, line["why"]))
    return found


class Applications:
    """In either order: each connects anew all the time, and so votes."""

    def __init__(self, duo: Duo) -> None:
        self._duo = duo
        self.accepted: list[tuple[float, float, str]] = []
        """From, to, by whom."""
        self.failures: list[BaseException] = []
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._votes, args=(each,), daemon=True) for each in ORDERS
        ]

    def begin(self) -> None:
        for each in self._threads:
            each.start()

    def end(self) -> None:
        self._is_over.set()
        for each in self._threads:
            each.join(2 * PATIENCE)
        assert not any(each.is_alive() for each in self._threads)
        assert not self.failures

    def _votes(self, order: tuple[str, ...]) -> None:
        members = ",".join(self._duo.address(each) for each in order)
        uri = f"failover:({members})?randomize=false&startup-max-reconnect-attempts=1&{SHM}"
        try:
            while not self._is_over.wait(0.05):
                with suppress(Error):
                    self._once(uri)
        except BaseException as error:
            self.failures.append(error)
            raise

    def _once(self, uri: str) -> None:
        since = time.time()
        with shmbroker.connect(uri, user="programs", password=PASSWORD) as broker:
            until = time.time()
            name = next((each for each in NAMES if broker.uri == self._duo.address(each)), "")
            if not name:
                return  # its link is lost already: nobody knows who has accepted it
            self.accepted.append((since, until, name))
            orders = broker.declare_queue("orders")
            orders.publish(b"x", timeout=0.5)
            orders.receive(timeout=0.5)


@dataclass
class Blows:
    duo: Duo
    rack: Rack
    random: Random

    def __post_init__(self) -> None:
        self.ends: dict[str, list[float]] = {name: [] for name in NAMES}
        self.disturbed: list[tuple[float, float]] = []
        """By a cut or a pause: from, to."""

    def strike(self) -> None:
        name = self.random.choice(NAMES)
        verb = self.random.choice(("kill", "stop", "still", "cut", "deafen", "isolate"))
        long = self.random.random() * 4
        if verb in ("kill", "stop"):
            self._end(name, is_graceful=verb == "stop")
            time.sleep(long)
            self.duo[name].start()
        else:
            since = time.time()
            self._disturb(verb, name)
            time.sleep(long)
            if verb == "still":
                self.duo.goes_on(name)
            self.rack.heal()
            self.disturbed.append((since, time.time()))
        time.sleep(self.random.random() * 2)

    def _end(self, name: str, *, is_graceful: bool) -> None:
        if is_graceful:
            self.duo[name].becomes("live").stop()
            self.ends[name].append(time.time())
        else:
            self.ends[name].append(time.time())
            self.duo[name].kill()  # until it is reaped, which may take a while

    def _disturb(self, verb: str, name: str) -> None:
        if verb == "still":
            self.duo.stands_still(name)
        elif verb == "isolate":
            self.rack.isolate(name)
        else:
            self.rack.cut(*NAMES[:: 1 if name == "one" else -1], both_ways=verb == "cut")

    def may_have_split(self, at: float) -> bool:
        return any(since < at and at < until + AFTERMATH for since, until in self.disturbed)


@pytest.fixture
def hosts() -> Iterator[Rack]:
    with rack(*NAMES, "programs") as made:
        yield made


def states(duo: Duo) -> list[str]:
    return [str(of(duo[name]).get("pair")) for name in NAMES]


def is_settled(duo: Duo) -> bool:
    """One is active and the other one passive, and they are linked and know it of each other."""
    one, two = (of(duo[name]) for name in NAMES)
    return (
        {one.get("pair"), two.get("pair")} == {"active", "passive"}
        and (one.get("peer"), two.get("peer")) == (two["pair"], one["pair"])
        and bool(one.get("linked") and two.get("linked"))
    )


def settles(duo: Duo) -> None:
    """After a conflict somebody resets it.

    After a cut they may seem to be linked for a while: a passive one that has heard nothing may
    still be asked by a client, and then there is another conflict.
    """
    since = time.monotonic()
    until = since + PATIENCE
    while time.monotonic() - since < STABLE_SECONDS:
        if not is_settled(duo):
            since = time.monotonic()
        found = zip(NAMES, states(duo), strict=True)
        in_conflict = [name for name, state in found if state == "conflict"]
        if in_conflict:  # one of them, if the other one was started anew since
            with suppress(NotRunning):  # it was just killed, and is started anew
                duo.resets(in_conflict[-1])
        assert time.monotonic() < until, (states(duo), [duo[name].said() for name in NAMES])
        time.sleep(0.05)


def check(duo: Duo, blows: Blows, accepted: list[tuple[float, float, str]], ends: str) -> None:
    one, two = (times_of(duo[name], blows.ends[name]) for name in NAMES)
    for first, second in (sorted(each, key=lambda at: at.since) for each in product(one, two)):
        if second.since + SLACK >= first.until:
            continue
        assert second.why == "client asked", (first, second)
        assert blows.may_have_split(second.since), (first, second)
        if first.until < float("inf") and second.until < float("inf"):
            told = {first.ended, second.ended}
            assert told & {"its process ended", ends}, (first, second)
    for since, until, name in accepted:
        times = one if name == "one" else two
        was = any(at.since < until + SLACK and since - SLACK < at.until for at in times)
        assert was, (since, until, name, times)


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_blow_upon_blow(tmp_path: Path, hosts: Rack, seed: int) -> None:
    random = Random(seed)
    wins = "primary-wins" if seed % 2 else "stop-both"
    addresses = {name: hosts[name].address for name in NAMES}
    with duos(tmp_path, addresses) as made:
        duo = made({"ha.pair.on-conflict": wins})
        for name in NAMES:
            duo[name].before = partial(hosts[name].enter)
        duo.up()
        blows = Blows(duo, hosts, random)
        with hosts["programs"].entered():
            applications = Applications(duo)
            applications.begin()
            for _ in range(BLOWS):
                blows.strike()
            settles(duo)
            applications.end()
            ends = BOTH_WERE_ACTIVE + (", and the primary wins" if seed % 2 else "")
            check(duo, blows, applications.accepted, ends)
            assert applications.accepted
            with duo.program(*NAMES) as broker:
                broker.declare_queue("last").publish(b"x", timeout=PATIENCE)
