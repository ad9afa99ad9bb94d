"""Programs that find a broker: `discovery:(udp://…)` and `discovery:(registry:…)`."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed, InvalidArgument, aio
from shmbroker.perf.machine.port import free_port
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.discovered.conftest import PROGRAMS, Lan

FAR = "prefer-shared-memory=false"


def serves(
    lan: Lan, name: str, means: dict[str, object], *, role: str = "live", **more: Any
) -> Any:
    """In no cluster: it announces where its programs come to."""
    port = free_port()
    given: dict[str, object] = {
        "connectors__apps__uri": f"tcp://127.0.0.1:{port}",
        "acceptors__apps__uri": f"tcp://127.0.0.1:{port}",
        "credentials__apps__password": PROGRAMS,
        "broadcast__apps__connector": "apps",
        "broadcast__apps__credentials": "apps",
        "broadcast__apps__broadcast-period": "200ms",
        **{f"broadcast__apps__{key}": value for key, value in means.items()},
    }
    of_cluster = (
        "connector", "user", "password", "static-connectors", "max-hops", "retry-interval",
    )  # fmt: skip
    none = dict.fromkeys(f"cluster__town__{key}" for key in of_cluster)
    none |= dict.fromkeys((f"connectors__{name}__uri", "acceptors__town__uri"))
    none |= {"acceptors__town__roles": None}
    return Cluster.add(lan.cluster, name, role, **(none | given | more))


def uri_of(lan: Lan, means: str, more: str = FAR) -> str:
    if means == "udp":
        place = f"udp://231.7.7.7:{lan.port}"
        return f"discovery:({place})?local-bind-address=127.0.0.1&{more}"
    return f"discovery:(registry:{lan.folder})?{more}"


def means_of(lan: Lan, means: str) -> dict[str, object]:
    return lan.udp() if means == "udp" else lan.registry


@pytest.mark.parametrize("means", ["udp", "registry"])
def test_it_finds_a_broker_and_its_successor(lan: Lan, means: str) -> None:
    """A broker that comes later is found by the same session."""
    first = serves(lan, "east", means_of(lan, means)).start()
    uri = uri_of(lan, means)
    with shmbroker.connect(uri, user="apps", password=PROGRAMS) as broker:
        broker.declare_queue("orders").publish(b"x")
        assert broker.queue("orders").receive() == b"x"
        first.kill()
        serves(lan, "west", means_of(lan, means)).start()
        broker.declare_queue("of west").publish(b"y", timeout=60)
        assert [each.uri for each in broker.topology() if each.name == "west"]


def test_with_asyncio(lan: Lan) -> None:
    serves(lan, "east", lan.registry).start()

    async def connects() -> None:
        uri = uri_of(lan, "registry")
        async with aio.connect(uri, user="apps", password=PROGRAMS) as broker:
            orders = await broker.declare_queue("orders")
            await orders.publish(b"x")

    asyncio.run(connects())


@pytest.mark.parametrize("means", ["udp", "registry"])
def test_nobody_in_time(lan: Lan, means: str) -> None:
    means_of(lan, means)
    uri = uri_of(lan, means, "discovery-initial-wait=300ms")
    with pytest.raises(ConnectionClosed, match=r"found nobody in 0\.3 s \(discovery-initial-wait"):
        shmbroker.connect(uri, user="apps", password=PROGRAMS)


def test_another_password_finds_nobody(lan: Lan) -> None:
    serves(lan, "east", lan.registry).start()
    while not list(lan.folder.glob("shmbroker.*")):
        time.sleep(0.02)
    uri = uri_of(lan, "registry", "discovery-initial-wait=1s")
    with pytest.raises(ConnectionClosed, match="were signed with another password"):
        shmbroker.connect(uri, user="apps", password="another horse battery")


@pytest.mark.parametrize(
    ("uri", "complaint"),
    [
        ("discovery:lan", r"has \[discovery\.lan\]: a program says discovery:\(udp://group:port\)"),
        ("discovery:(udp://10.0.0.1:9876)", "expected an address of a multicast group"),
        ("discovery:(registry:/x)?channel=a%2Fb", "expected a name of up to 64"),
    ],
)
def test_what_a_program_cannot_say(uri: str, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        shmbroker.connect(uri, user="apps", password=PROGRAMS)


@pytest.mark.parametrize("means", ["udp", "registry"])
def test_sessions_spread_over_brokers_that_are_found(lan: Lan, means: str) -> None:
    for name in ("east", "west"):
        serves(lan, name, means_of(lan, means)).start()
    found = shmbroker.cluster(uri_of(lan, means), user="apps", password=PROGRAMS)
    late = time.monotonic() + 60
    while len(found.members) < 2:
        assert time.monotonic() < late
        time.sleep(0.02)
    with ExitStack() as opened:
        sessions = [opened.enter_context(found.session()) for _ in range(4)]
        where = {each.uri.removeprefix("tcp://") for each in sessions}
        assert where == set(found.members)


def test_a_session_of_those_that_are_found_with_asyncio(lan: Lan) -> None:
    """Whoever comes later is found by a session that waits."""

    async def connects() -> None:
        found = aio.cluster(uri_of(lan, "registry"), user="apps", password=PROGRAMS)
        assert found.members == []
        opening = asyncio.ensure_future(_opened(found))
        await asyncio.to_thread(serves(lan, "east", lan.registry).start)
        async with await opening as broker:
            await (await broker.declare_queue("orders")).publish(b"x")

    async def _opened(found: Any) -> Any:
        return await found.session()

    asyncio.run(connects())


def test_several_sessions_do_not_know_the_tables_of_a_broker() -> None:
    with pytest.raises(InvalidArgument, match=r"a program says discovery:\(udp"):
        shmbroker.cluster("discovery:lan", user="apps", password=PROGRAMS)
