"""Whatever a peer with the right key says, whoever serves its role serves the next one.

A network thread that ends by an exception ends all links of its process.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import msgpack
import pytest
import zmq

import shmbroker
from shmbroker.netbridge.agent.codec import WORDS as OF_AGENTS
from shmbroker.netbridge.agent.said import Joins, Wanted
from shmbroker.netbridge.agent.said import Wants as OfAgent
from shmbroker.netbridge.cluster.codec import WORDS as OF_CLUSTERS
from shmbroker.netbridge.cluster.said import Announcement, Makes
from shmbroker.netbridge.cluster.said import Here as OfCluster
from shmbroker.netbridge.election.codec import VOTES
from shmbroker.netbridge.member.codec import WORDS as OF_MEMBERS
from shmbroker.netbridge.member.codec import Here
from shmbroker.netbridge.network.codec import WORDS as OF_NETWORKS
from shmbroker.netbridge.network.said import Wants as OfNetwork
from shmbroker.netbridge.pair.codec import WORDS as OF_PAIRS
from shmbroker.netbridge.queue_replica.codec import WORDS as OF_QUEUES
from shmbroker.netbridge.queue_replica.told import Follow
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.frame import (
    COUNT_MAX,
    KINDS,
    OF_REPLICATION,
    OF_SESSIONS,
    Attach,
    Attached,
    Command,
    Confirm,
    Credit,
    Frame,
    Open,
    Opened,
    Part,
    Passed,
    Proof,
    Records,
    Refused,
    Reject,
    Resume,
    Talk,
    Unopened,
    Vote,
)
from shmbroker.netbridge.wire.version import MOST
from shmbroker.netbridge.wire.vocabulary import Vocabulary
from shmbroker.netbridge.wire.words import (
    AGENT_LINK,
    FORWARDING_LINK,
    NETWORK_LINK,
    OF_PROGRAMS,
    PAIR_LINK,
    QUEUES_LINK,
    Demand,
    Level,
    Role,
    TargetKind,
    Verb,
)
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.paired.conftest import duos
from tests.support.hostile import BODIES, Far, Peer, frames, words
from tests.support.runs import Run
from tests.support.witness import KEYS, Place

PASSWORD: Final = "correct horse battery staple"
PATIENCE: Final = 60.0
HOST: Final = "127.0.0.1"
ROLES: Final = ("client", "admin", "viewer", "peering", "replica")
TOGETHER: Final = 8
"""Words that are said over one connection, which the first may end."""
DEEP: Final = b"\x91" * 1000 + b"\xc0"
"""Lists in lists: msgpack goes so far, and `repr` does not."""
DEEP_ROW: Final = b"\x91\x84" + b"".join(
    msgpack.packb(name) + value
    for name, value in {
        "queue": b"\xa1n", "slots": DEEP, "settings": b"\x80", "paused": b"\xc2"
    }.items()
)  # fmt: skip
ANSWERS: Final = frozenset({Opened, Unopened, Credit, Confirm, Reject})
"""Of who gets what the other end ships."""
FLOWS: Final = ANSWERS | {Open, Resume, Records, Part, Passed}
OF_TARGETS: Final = (*FLOWS,)
Says = tuple[Frame, type[Frame] | None]
"""And the answer that it waits for."""


@dataclass(frozen=True)
class Served:
    """A role with a link, at a process that serves it."""

    far: Far
    kinds: frozenset[type[Frame]]
    """That its peers say."""
    words: tuple[tuple[type[Frame], Vocabulary], ...] = ()
    begins: Callable[[], tuple[Says, ...]] = lambda: ()
    """What an honest one says first."""
    target: int = 0
    bodies: tuple[bytes, ...] = ()
    """Of words that are odd in another way."""


# --- who serves -----------------------------------------------------------------------------------


def a_broker(opened: ExitStack, folder: Path) -> dict[str, Served]:
    vhost, port = opened.enter_context(vhost_for_a_while()), free_port()
    given: dict[str, object] = {
        "instance.arena": "64MiB",
        "acceptors.all.uri": f"tcp://{HOST}:{port}",
        "acceptors.all.roles": list(ROLES),
        "acceptors.all.credentials": "client",
        "link-defaults.heartbeat-interval": "30s",  # these peers beat no heart while they wait
    }
    for role in ROLES:
        given |= {f"credentials.{role}.password": PASSWORD, f"credentials.{role}.role": role}
    run = Run(folder / "broker", vhost, "live", given)
    opened.callback(run.kill)
    run.start().becomes("live")
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("x", durable=True).publish(b"one")
        broker.declare_queue("c")
        broker.declare_exchange("x", "topic")
        broker.declare_exchange("c", "topic")
    listens(port)
    key = Stretched("client", PASSWORD)
    far = {each: Far(port, key, Stretched(each, PASSWORD), Role(each)) for each in ROLES}
    peering, replica = far["peering"], far["replica"]
    talks = ANSWERS | {Talk}
    return {
        "client": Served(far["client"], OF_SESSIONS, (), attaches),
        "admin": Served(far["admin"], frozenset(), (), attaches),
        "viewer": Served(far["viewer"], frozenset(), (), attaches),
        "peering": Served(peering, FLOWS, (), opens, target=1),
        "network": Served(replace(peering, link=f"{NETWORK_LINK}n"), talks, ((Talk, OF_NETWORKS),),
                          fetches),
        "agent": Served(replace(peering, link=f"{AGENT_LINK}a"), talks, ((Talk, OF_AGENTS),),
                        joins),
        "queues": Served(replace(replica, link=QUEUES_LINK), frozenset(), ((Talk, OF_QUEUES),),
                         follows),
    }  # fmt: skip


def attaches() -> tuple[Says, ...]:
    return ((Attach(os.urandom(16), 1, 1, False, 0, -1), Attached),)


def opens() -> tuple[Says, ...]:
    of = os.urandom(16)
    return ((Open(1, TargetKind.QUEUE, "x", of, Level.SHM, True, 0), Opened), (Resume(1, 0), None))


def fetches() -> tuple[Says, ...]:
    return ((Talk(OF_NETWORKS.encode(OfNetwork(9, True, True, ("x",)))), Open),)


def joins() -> tuple[Says, ...]:
    wants = OfAgent(1, True, (Wanted("#", b"", False),))
    return (
        (Talk(OF_AGENTS.encode(Joins("x", "topic"))), Talk),
        (Talk(OF_AGENTS.encode(wants)), Open),
    )


def follows() -> tuple[Says, ...]:
    return ((Talk(OF_QUEUES.encode(Follow(1, "x", b"", 0))), Talk),)


def a_witness(opened: ExitStack, folder: Path) -> dict[str, Served]:
    place = Place(folder / "witness")
    opened.callback(place.kill)
    place.begin()
    listens(place.port)
    far = Far(place.port, KEYS, KEYS, Role.WITNESS)
    return {"witness": Served(far, frozenset({Vote}), ((Vote, VOTES),))}


def a_cluster(opened: ExitStack, folder: Path) -> dict[str, Served]:
    cluster = Cluster(folder, opened)
    run = cluster.add("east", cluster__town__max_hops=1, grouping__g__type="local")
    run.start().becomes("live")
    listens(cluster.ports["east"])
    key = Stretched("town", PASSWORD)
    far = Far(cluster.ports["east"], key, key, Role.CLUSTER)
    kinds, both = frozenset({Talk, Vote}), ((Talk, OF_CLUSTERS), (Vote, VOTES))
    deep = OF_CLUSTERS.encode(Makes(1, DEEP_ROW))
    return {
        "member": Served(far, kinds, both, is_here, bodies=(deep,)),
        "unknown": Served(far, kinds, both),
        "forwarding": Served(replace(far, link=f"{FORWARDING_LINK}: b"), FLOWS),
    }


def is_here() -> tuple[Says, ...]:
    own = Announcement(
        b"w" * 16, os.urandom(16), 1, 1, "west", f"tcp://{HOST}:1", True, ("west",), ""
    )
    return ((Talk(OF_CLUSTERS.encode(OfCluster(own, 1, 0))), Talk),)


def a_member(opened: ExitStack, folder: Path) -> dict[str, Served]:
    """Of a replicated node; the other one is the peer."""
    vhost, port = opened.enter_context(vhost_for_a_while()), free_port()
    run = Run(folder / "a", vhost, "auto", {
        "store.path": "data",
        "ha.policy": "replication",
        "ha.replication.on-partition": "continue-alone",
        "ha.members": [f"a=tcp://{HOST}:{port}", f"b=tcp://{HOST}:{free_port()}"],
        "acceptors.members.uri": f"tcp://{HOST}:{port}",
        "acceptors.members.roles": ["replica"],
        "credentials.members.password": PASSWORD,
        "credentials.members.role": "replica",
    })  # fmt: skip
    opened.callback(run.kill)
    run.start()
    listens(port)
    key = Stretched("members", PASSWORD)
    far = Far(port, key, key, Role.REPLICA, name="b")
    return {"replica": Served(far, OF_REPLICATION, ((Talk, OF_MEMBERS),), introduces)}


def introduces() -> tuple[Says, ...]:
    return ((Talk(OF_MEMBERS.encode(Here("", 1, 0, "boot", ""))), Talk),)


def a_pair(opened: ExitStack, folder: Path) -> dict[str, Served]:
    duo = opened.enter_context(duos(folder, {"one": HOST, "two": HOST}))()
    duo["one"].start()
    listens(duo.ports["one"])
    key, own = Stretched("programs", PASSWORD), Stretched("pair", PASSWORD)
    far = Far(duo.ports["one"], key, own, Role.PEERING, link=PAIR_LINK)
    return {"pair": Served(far, frozenset({Talk}), ((Talk, OF_PAIRS),))}


def listens(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError):
            socket.create_connection((HOST, port)).close()
            return
        assert time.monotonic() < until, "it does not listen"
        time.sleep(0.01)  # nobody tells


WHO: Final = {each.__name__: each for each in (a_broker, a_witness, a_cluster, a_member, a_pair)}


@pytest.fixture(scope="module")
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as made:
        yield made


@pytest.fixture(scope="module", params=WHO)
def roles(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Served]]:
    with ExitStack() as opened:
        yield WHO[request.param](opened, tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def meets(context: zmq.Context[zmq.Socket[bytes]]) -> Iterator[Callable[..., Peer]]:
    """A peer that has said nothing yet, or, with `as_far` as an honest one, all that begins."""
    with ExitStack() as opened:

        def made(at: Served, *, begins: bool = False) -> Peer:
            peer = Peer(context, at.far)
            opened.callback(peer.close)
            if begins:
                peer.welcomed()
                for frame, answer in at.begins():
                    peer.says(frame)
                    assert answer is None or peer.hears(answer), f"no {answer} to {frame}"
            return peer

        yield made


# --- what they say --------------------------------------------------------------------------------


def said(at: Served) -> Iterator[list[Frame]]:
    """Over one connection each: one of each kind, all that are odd of those that its peers say, and
    odd words."""
    for kind in KINDS:
        made = frames(kind)
        for each in made if kind in at.kinds else islice(made, 1):
            yield [replace(each, target=at.target) if isinstance(each, OF_TARGETS) else each] * 2
    for kind, vocabulary in at.words:
        odd = frames(kind, (*words(vocabulary), *at.bodies))
        while some := list(islice(odd, TOGETHER)):
            yield some


Meets = Callable[..., Peer]


def test_who_breaks_off_while_it_shakes_hands_is_no_matter_to_others(
    roles: dict[str, Served], meets: Meets
) -> None:
    for at in roles.values():
        meets(at).close()
        meets(at).says(at.far.hello).close()
        for patience in (0, None):
            peer = meets(at)
            proof = peer.challenged()
            if patience is None:
                peer.says(proof)
            peer.close()
        meets(at).welcomed().close()
        meets(at, begins=True)


def test_who_is_refused_is_no_matter_to_others(roles: dict[str, Served], meets: Meets) -> None:
    for at in roles.values():
        hello, far = at.far.hello, meets(at).welcomed().far
        wrong = [
            replace(hello, user=""),
            replace(hello, user="\u00e9" * 127),
            replace(hello, vhost="another"),
            replace(hello, node=far.node),
            replace(hello, node=far.node, incarnation=far.incarnation),
            *(replace(hello, role=each) for each in Role if each is not hello.role),
        ]
        for each in wrong:
            peer = meets(at)
            peer.says(peer.challenged(each))
        assert meets(at).says(replace(hello, low=MOST, high=MOST)).hears(Refused)
        peer = meets(at)
        peer.challenged()
        assert peer.says(Proof(b"p")).hears(Refused)
        meets(at, begins=True)


def test_what_comes_too_early_is_no_matter_to_others(
    roles: dict[str, Served], meets: Meets
) -> None:
    at = next(iter(roles.values()))
    for kind in KINDS:
        for each in islice(frames(kind), 2):
            meets(at).says(each).close()
            peer = meets(at)
            peer.challenged()
            peer.says(each).close()
    meets(at, begins=True)


def test_whatever_a_peer_says_the_next_one_is_served(
    roles: dict[str, Served], meets: Meets
) -> None:
    for at in roles.values():
        for each in said(at):
            peer = meets(at, begins=True)
            for frame in each:
                peer.says(frame)
            peer.close()
        meets(at, begins=True)


def test_what_is_no_frame_is_no_matter_to_others(roles: dict[str, Served], meets: Meets) -> None:
    for at in roles.values():
        for early in (True, False):
            for each in NO_FRAMES:
                peer = meets(at) if early else meets(at, begins=True)
                peer.sends(each).close()
        meets(at, begins=True)


def test_whatever_a_program_asks_for_the_next_one_is_served(
    roles: dict[str, Served], meets: Meets
) -> None:
    """Each field of each verb, with what it is not."""
    for at in (each for each in roles.values() if each.far.role in OF_PROGRAMS):
        for place, verb in enumerate(VERBS):
            peer = meets(at, begins=True)
            for number, body in enumerate(asked(place)):
                peer.says(_command(number, verb, body))
            is_answered = verb is Verb.END or peer.hears_of(number)
            assert is_answered, f"{verb} of a {at.far.role.value}"
            peer.close()
        meets(at, begins=True)


def asked(place: int) -> Iterator[bytes]:
    yield from (*BODIES, DEEP, *map(msgpack.packb, ODD))
    for at, name in enumerate(FIELDS):
        for more, noun in enumerate(("queue", "exchange")):
            yield msgpack.packb({noun: "c"} | {name: ODD[(place + at + 7 * more) % len(ODD)]})
        yield b"\x82" + msgpack.packb("queue") + msgpack.packb("c") + msgpack.packb(name) + DEEP


def _command(number: int, verb: Verb, body: bytes) -> Command:
    """Numbers are odd in turn."""
    value, count = NUMBERS[number % 5], NUMBERS[number % 3]
    again, demand = number % 11 == 0, Demand.EFFECTIVE
    return Command(number, verb, number % 7, value, count, demand, 0, again, 0, False, body)


def _head(*values: object) -> bytes:
    packed: bytes = msgpack.packb(values)
    return len(packed).to_bytes(4, "little") + packed


NO_FRAMES: Final = (
    b"", b"\0", bytes(4), b"\xff" * 4, b"\xff" * 100, bytes(9000), _head(), _head(0), _head(0, 0),
    _head(-1, 0), _head(len(KINDS), 0), _head((1 << 64) - 1, 0),
    _head("x", 0), _head(None, None), _head(16, 1 << 63, 0), _head(16, 9, 0), _head(16, -1, 0),
    _head(16, 0, "x"), _head(16, 0, 0) + b"behind", len(DEEP).to_bytes(4, "little") + DEEP,
)  # fmt: skip
NUMBERS: Final = (1, 0, COUNT_MAX, 2, COUNT_MAX - 1)
VERBS: Final = tuple(sorted(Verb, key=lambda verb: verb is Verb.DELETE))
"""That last: what is to be asked for is to be there."""
ODD: Final = (
    None, 0, -1, 1 << 63, (1 << 64) - 1, 1.5, math.nan, math.inf, "", "\0", "x" * 300, "$own", "c",
    b"", b"\xff" * 16, [], {}, [[1]], [["queue", "c", b""]], [["ack", 0, 1 << 62]], [[1, [0, -1]]],
    True, {"a": 1},
)  # fmt: skip
FIELDS: Final = (
    "after", "alternate", "arguments", "at", "body", "correlation", "destination", "does",
    "durable", "exclusive", "force", "group", "key", "kind", "level", "limit", "looks", "match",
    "name", "noun", "of", "open", "opens", "origin", "other", "pattern", "position", "positions",
    "priority", "properties", "published", "removes", "scheduled", "selector", "settings",
    "shared", "slots", "stands", "start", "subscription", "to", "ttl", "unconfirmed", "verb",
)  # fmt: skip
