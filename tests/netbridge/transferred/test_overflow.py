"""What waits while the link is down, in each setting, and what an operator sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from shmbroker import Broker, QueueFull
from shmbroker.netbridge.link.action import Alert
from tests.cli.command import Shell
from tests.netbridge.networked.conftest import PATIENCE, Brokers
from tests.netbridge.transferred.conftest import add, agent_of, bound, forwarded, got

MOST = 1024
"""The least that a queue without pages has room for."""
WAITS = {
    "auto": range(MOST + 100),
    "page": range(MOST + 100),
    "drop-oldest": range(100, MOST + 100),
    "block": range(MOST),
    "fail": range(MOST),
}


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Brokers, Broker]]:
    """And the far one, which has a queue for each, is away."""
    with ExitStack() as opened:
        brokers = Brokers(tmp_path_factory.mktemp("two"), opened)
        add(brokers, "far").start().becomes("live")
        for each in WAITS:
            bound(brokers.at("far"), each, "fanout", each)
        brokers["far"].kill()
        given = [
            {"name": each, "to": "far", "mode": 2, "overflow": each, "max_messages": MOST}
            for each in WAITS
        ]
        add(brokers, "near", *given).start().becomes("live")
        yield brokers, brokers.at("near")


def published(brokers: Brokers, near: Broker, exchange: str) -> None:
    forwards = forwarded(brokers, near, exchange, "fanout")
    for each in range(MOST + 100):
        try:
            forwards.publish(b"%d" % each, timeout=0)
        except QueueFull:
            assert exchange in ("block", "fail")
            assert each == MOST
            return
    assert exchange not in ("block", "fail")


def test_each_setting(near: tuple[Brokers, Broker]) -> None:
    brokers, broker = near
    shell = Shell(brokers.vhosts["near"])
    for each in WAITS:
        published(brokers, broker, each)

    def rows() -> dict[str, dict[str, object]]:
        return {row["exchange"]: row for row in shell("mta", "list", "--json").json}

    wanted = {
        each: (len(waits), 100 if each == "drop-oldest" else 0) for each, waits in WAITS.items()
    }
    brokers.until(rows, lambda those: {
        each: (row["lag"], row["dropped"]) for each, row in those.items()
    } == wanted)  # fmt: skip
    lines = [line for line in brokers["near"].said() if line.get("state") == "dropping"]
    assert [line["link"] for line in lines] == [agent_of(brokers, "drop-oldest", "far")]
    told = {each["subject"]: each for each in shell("doctor", "--json").json}
    for each, waits in WAITS.items():
        subject = f"agent {agent_of(brokers, each, 'far')!r} of vhost {brokers.vhosts['near']!r}"
        assert f"{len(waits):,} messages wait, the first for" in told[subject]["problem"]
    brokers["far"].start().becomes("live")
    far = brokers.at("far")
    with far.queue("drop-oldest").get(timeout=PATIENCE) as first:
        assert (first.body, first.redelivered) == (b"100", False), "what was dropped came nowhere"
        first.give_back()
    alerts = {each.value for each in Alert}
    assert not [line for line in brokers["near"].said() if line.get("what") in alerts]
    for each, waits in WAITS.items():
        assert got(far.queue(each), len(waits)) == [*waits], each
    up = brokers.until(rows, lambda those: not any(row["lag"] for row in those.values()))
    assert {each: row["forwarded"] for each, row in up.items()} == {
        each: len(waits) for each, waits in WAITS.items()
    }
    doctor = shell("doctor", "--json").json
    assert not any(brokers.vhosts["near"] in each["subject"] for each in doctor)
