"""Random blows to brokers on hosts of their own that fetch from each other: each message is
consumed once, and nothing is stuck when it is quiet.

    hub     three spokes fetch from a hub
    chain   each fetches from the one before it
    ring    each fetches from the next one
    pair    a spoke fetches from a live and its backup on a shared store
    node    a spoke fetches from a live and its replica, of which a witness says who serves
    home    a live and its backup on a shared store fetch from a hub, which fetches by the same link
    copies  a live and its replica do
    both    a live and its backup fetch from another live and its backup
    bridge  a live and its backup ship a queue to another live and its backup

Brokers are killed, stopped, stand still; links are stopped; networks are cut, one way too, and lose
packets; consumers come and go; everybody publishes.

Hosts are network namespaces, so this is for root.  More than in `make test`, which leaves out home
and both:
NETWORK_HOST_SEEDS=1-50 NETWORK_HOST_BLOWS=12.
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

import pytest

from shmbroker.ipc.instance import ordering
from shmbroker.ipc.instance.status import NotRunning
from shmbroker.perf.machine.port import free_port
from tests.netbridge.networked.conftest import PASSWORD, PATIENCE, Brokers
from tests.netbridge.replicated.test_partitions import lives_on
from tests.support.blows import HostBlows, seeds_of
from tests.support.counting import Programs
from tests.support.guards import Witness
from tests.support.hosts import Rack, has_hosts

pytestmark = pytest.mark.skipif(not has_hosts(), reason="network namespaces are for root")


GIVEN = os.environ.get("NETWORK_HOST_SEEDS", "")
SEEDS = seeds_of(GIVEN or "1")
BLOWS = int(os.environ.get("NETWORK_HOST_BLOWS", "5"))
QUEUES = {"orders": {"durable": True, "max_deliveries": None, "slots": 1 << 14}}
HOME = ("home", "home2")
BOTH = {"home2": "home", "hub2": "hub"}
KINDS = ("kill", "kill", "stop", "still", "link", "isolate", "cut", "deafen", "lose")


@dataclass(frozen=True)
class Shape:
    fetches: dict[str, str]
    """Who has a link, and the names in its uri."""
    backups: dict[str, str] = field(default_factory=dict)
    """Who is one, and of whom."""
    has_replicas: bool = False
    """Backups have vhosts of their own."""
    duplex: bool = False
    is_bridge: bool = False
    """The queue is shipped, whether somebody consumes it or not."""

    @property
    def lives(self) -> list[str]:
        """One of each vhost."""
        left_out = () if self.has_replicas else self.backups
        return sorted({*self.fetches, *self._sources()}.difference(left_out))

    @property
    def names(self) -> list[str]:
        return [*(each for each in self.lives if each not in self.backups), *self.backups]

    @property
    def consuming(self) -> list[str]:
        """Of the lives: from a bridge nobody else takes."""
        return [each for each in self.lives if not self.is_bridge or each not in self.fetches]

    def _sources(self) -> list[str]:
        return [each for names in self.fetches.values() for each in names.split(",")]


SHAPES = {
    "hub": Shape(dict.fromkeys(("east", "west", "south"), "hub")),
    "chain": Shape({"middle": "first", "last": "middle"}),
    "ring": Shape({"east": "west", "west": "south", "south": "east"}),
    "pair": Shape({"spoke": "hub,hub2"}, {"hub2": "hub"}),
    "node": Shape({"spoke": "hub,hub2"}, {"hub2": "hub"}, has_replicas=True),
    "home": Shape(dict.fromkeys(HOME, "hub"), {"home2": "home"}, duplex=True),
    "copies": Shape(dict.fromkeys(HOME, "hub"), {"home2": "home"}, has_replicas=True, duplex=True),
    "both": Shape(dict.fromkeys(HOME, "hub,hub2"), BOTH),
    "bridge": Shape(dict.fromkeys(HOME, "hub,hub2"), BOTH, is_bridge=True),
}
LONG = ("home", "both")
"""What they show, pair, copies and bridge show the most of."""


class Blows(HostBlows):
    def __init__(
        self, brokers: Brokers, shape: Shape, rack: Rack, programs: Programs, seed: int
    ) -> None:
        super().__init__(brokers, shape.names, rack, programs, seed)
        self._brokers, self._shape = brokers, shape

    def strike(self) -> None:
        self._is_whole()
        self._somebody_comes_or_goes()
        kinds = (*KINDS, "takeover", "takeover") if self._shape.backups else KINDS
        kind, name = self._random.choice(kinds), self._random.choice(self._names)
        self.struck.append(f"{kind} {name}")
        if kind == "takeover":
            self._take_over()
        elif kind == "link":
            self._without_link()
        elif kind in ("kill", "stop", "still"):
            self.on_process(kind, name)
        else:
            self.on_network(kind, name)

    def end(self) -> None:
        """Somebody consumes at each."""
        self._programs.is_over.set()
        for name in self._shape.consuming:
            self.stays(name, "orders")

    def serving(self) -> list[str]:
        return sorted({self._serves(self._members(name)) for name in self._names})

    def _somebody_comes_or_goes(self) -> None:
        self.comes_or_goes(self._random.choice(self._shape.consuming), "orders")

    def _members(self, name: str) -> list[str]:
        """This one, its backup, or whose backup it is."""
        live = self._shape.backups.get(name, name)
        return [live, *(each for each, of in self._shape.backups.items() if of == live)]

    def _serves(self, names: list[str]) -> str:
        return str(self._brokers.until(lambda: self._live(names), bool))

    def _live(self, names: list[str]) -> str:
        for name in names:
            with suppress(NotRunning):
                if self._brokers[name].status.state == "live":
                    return name
        return ""

    def start(self, name: str) -> None:
        self._brokers[name].start()
        self._brokers.until(
            lambda: self._brokers[name].status.state, lambda state: state in ("live", "passive")
        )  # while another one serves, it may be struck before it has begun
        self._serves(self._members(name))
        self._is_whole()

    def _is_whole(self) -> None:
        """Replicas have what the live has: one of both may be struck."""
        if self._shape.has_replicas:
            of_both = [self._brokers[name] for pair in self._shape.backups.items() for name in pair]
            self._brokers.until(
                lambda: [run.status.replication for run in of_both],
                lambda told: all(each.startswith("in sync") for each in told),
            )

    def _take_over(self) -> None:
        pair = self._members(self._random.choice(list(self._shape.backups)))
        name = self._serves(pair)
        self._brokers[name].kill()
        self._serves([each for each in pair if each != name])
        self.for_a_while()
        self.start(name)

    def _without_link(self) -> None:
        names = self._members(self._random.choice(list(self._shape.fetches)))
        self._order(names, "stop")
        self.for_a_while()
        self._order(names, "start")

    def _order(self, names: list[str], verb: str) -> None:
        """Who serves just now has no links yet, and may be about to hand over."""
        given = {"verb": verb, "name": "fetch"}
        self._brokers.until(
            lambda: ordering.asked(self._brokers[self._serves(names)].folder, given, PATIENCE),
            lambda answer: answer is not None and "why" not in answer,
        )


def of_members(
    brokers: Brokers, witness: Witness, names: list[str]
) -> dict[str, dict[str, object]]:
    """Settings of those that have copies of each other."""
    places = {name: f"tcp://{brokers.hosts[name]}:{free_port()}" for name in names}
    of_all: dict[str, object] = {
        "ha.policy": "replication",
        "ha.members": [f"{name}={place}" for name, place in places.items()],
        "ha.replication.retry-replication-wait": "100ms",
        "ha.replication.check-for-live-server": True,
        "credentials.members.password": PASSWORD,
        "credentials.members.role": "replica",
        "acceptors.members.roles": ["replica"],
        **witness.settings,
    }
    return {name: {**of_all, "acceptors.members.uri": place} for name, place in places.items()}


def begun(opened: ExitStack, brokers: Brokers, shape: Shape, rack: Rack) -> None:
    brokers.heartbeat = "500ms"
    brokers.hosts |= {name: host.address for name, host in rack.hosts.items()}
    settings: dict[str, dict[str, object]] = {}
    if shape.has_replicas:
        witness = Witness(rack["guard"], brokers.folder / "guard")
        opened.callback(witness.close)
        [(backup, live)] = shape.backups.items()
        settings = of_members(brokers, witness, [live, backup])
    for name in shape.names:
        given = [brokers.address(each) for each in shape.fetches.get(name, "").split(",") if each]
        uri = f"masterslave:({','.join(given)})" if len(given) > 1 else "".join(given)
        role = "auto" if name in settings else "backup" if name in shape.backups else "live"
        shares = "" if shape.has_replicas else shape.backups.get(name, "")
        more = dict(settings.get(name, {}))
        if uri and shape.is_bridge:
            more |= {"bridges.fetch.queue": "orders", "bridges.fetch.to": uri}
        elif uri:
            more |= {"links.fetch.uri": uri, "links.fetch.duplex": shape.duplex}
        run = brokers.add(name, "", role, shares=shares, settings=more)
        run.before = partial(lives_on, name, rack[name].enter)
    for name in shape.names:
        brokers[name].start()
        if name not in shape.backups:
            brokers[name].becomes("live")
        elif not shape.has_replicas:
            brokers[name].becomes("passive")
    if not shape.is_bridge:  # what it ships is declared by those who publish
        for name in shape.fetches.keys() - shape.backups.keys():
            brokers.becomes(name, "up")


def remarks(brokers: Brokers) -> list[str]:
    """Of the doctor, but notes and what is about this host."""
    said = subprocess.run(
        [f"{sysconfig.get_path('scripts')}/shmbroker", "doctor", "--json"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    problems = [str(each) for each in json.loads(said) if each["severity"] != "note"]
    return [each for each in problems if any(vhost in each for vhost in brokers.vhosts.values())]


def left(brokers: Brokers, names: list[str]) -> list[str]:
    """What is there yet, in any queue."""
    found = []
    for name in names:
        broker = brokers.at(name)
        counts = {each.name: len(broker.queue(each.name)) for each in broker.queues()}
        found += [f"{count} in {queue} of {name}" for queue, count in counts.items() if count]
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [each for each in SHAPES if GIVEN or each not in LONG])
def test_each_is_consumed_once(brokers: Brokers, kind: str, seed: int) -> None:
    shape = SHAPES[kind]
    with ExitStack() as opened:
        rack = Rack(opened, (*shape.names, *(["guard"] if shape.has_replicas else [])))
        begun(opened, brokers, shape, rack)
        confirm = "disk+replicated" if shape.has_replicas else None
        programs = Programs(brokers.vhosts, QUEUES, confirm)
        blows = Blows(brokers, shape, rack, programs, seed)
        opened.callback(blows.close)
        for name in shape.lives:
            programs.publish(name, "orders")
        for _ in range(BLOWS):
            blows.strike()
        blows.end()
        programs.drain(PATIENCE)
        with suppress(AssertionError):  # it is told below, with more
            brokers.until(lambda: left(brokers, blows.serving()), lambda waiting: not waiting)
        blows.close()
        programs.join()
        stuck = remarks(brokers) + left(brokers, blows.serving())
    wrong = programs.verdict()
    told = f"seed {seed}: {blows.struck}\n{wrong}\n{stuck}\n{brokers.story()}"
    assert not wrong, told
    assert not stuck, told
    assert len(programs.acknowledged) > BLOWS
