"""Sessions of a cluster: which broker each is connected to."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import shmbroker
import shmbroker.aio
from shmbroker.netbridge.client.cluster import Cluster
from shmbroker.netbridge.client.connecting import Login, options_of
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.topology import Node
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}


@pytest.fixture
def two(vhost: str, tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    with ExitStack() as opened:
        broker = opened.enter_context(shmbroker.connect(f"shm://{vhost}", name="test"))
        sites = Site(broker, tmp_path), Site(broker, tmp_path)
        for each in sites:
            opened.enter_context(each.served())
        yield sites


def uri_of(two: tuple[Site, Site], policy: str) -> str:
    members = ",".join(f"tcp://127.0.0.1:{each.port}" for each in two)
    return f"failover:({members})?load-balancing={policy}"


@pytest.mark.parametrize(
    ("policy", "most"), [("round-robin", 2), ("first", 4), ("random-sticky", 4)]
)
def test_a_policy_chooses_for_each_session(two: tuple[Site, Site], policy: str, most: int) -> None:
    cluster = shmbroker.cluster(uri_of(two, policy), **LOGIN)
    seen: Counter[str] = Counter()
    for _ in range(4):
        with cluster.session() as broker:
            seen[broker.uri] += 1
    assert max(seen.values()) == most
    if policy == "first":
        assert set(seen) == {f"tcp://127.0.0.1:{two[0].port}"}


@pytest.mark.parametrize(
    "members", ["tcp://a", "static:(tcp://a,tcp://b)", "masterslave:(tcp://a,tcp://b)"]
)
def test_what_a_uri_says_of_sessions_holds_whatever_stands_in_it(members: str) -> None:
    asked: list[Login] = []
    uri = f"{members}?reconnect-deadline=5s&failover-mode=application"
    Cluster(Login(uri, "site", "correct horse battery", None), asked.append).session()
    options = options_of(parse(asked[0].uri))
    assert (options.reconnect_deadline, options.failover_mode) == (5.0, Mode.APPLICATION)


def test_with_asyncio_too(two: tuple[Site, Site]) -> None:
    async def main() -> set[str]:
        cluster = shmbroker.aio.cluster(uri_of(two, "round-robin"), **LOGIN)
        seen = set()
        for _ in range(2):
            async with cluster.session() as broker:
                seen.add(broker.uri)
        return seen

    assert len(asyncio.run(main())) == 2


def test_who_forgets_to_close_leaves_no_thread(served: Site) -> None:
    broker = shmbroker.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN)
    network = broker._session._thread._thread  # type: ignore[attr-defined]
    assert isinstance(network, threading.Thread)
    del broker
    late = time.monotonic() + 20
    while network.is_alive():
        assert time.monotonic() < late
        network.join(0.1)


def test_who_is_told_of_has_the_key_of_the_first_member_unless_it_has_its_own() -> None:
    pin, own = 32 * "ab", 32 * "cd"
    login = Login(f"failover:(tcp://a?key={pin})?load-balancing=first", "site", "x" * 12, None)
    cluster = Cluster(login, lambda made: made.uri)
    lives = {b"a": "tcp://a", b"b": "tcp://b", b"c": f"tcp://c?key={own}"}
    cluster._learns(tuple(Node(id * 16, 0, "", live) for id, live in lives.items()))
    members = ",".join(f"tcp://{host}:61616?key={key}" for host, key in
                       (("a", pin), ("b", pin), ("c", own)))  # fmt: skip
    assert str(cluster.session()).startswith(f"failover:({members})?")
