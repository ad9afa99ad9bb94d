"""Queues of the broker's own: which of them programs on other hosts may name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker import InvalidArgument
from shmbroker.ipc.queue.grouped import ASKED, ROUTES
from shmbroker.ipc.queue.inherited import INHERITED
from shmbroker.netbridge.clustered import streams
from shmbroker.netbridge.clustered.former import KEPT
from shmbroker.netbridge.clustered.stand_ins import stand_in
from shmbroker.netbridge.serving import commit
from shmbroker.netbridge.serving.travelling import WHOLE
from tests.support.serving import Site

TABLES = (
    ROUTES, ASKED, KEPT, INHERITED, streams.MARKS, commit.MARKS, stand_in("orders"), WHOLE,
)  # fmt: skip
OTHERS = ("orders", "$groupsies", "$sf.town.ab", "$link.a", "$bridge.a.b", "$mta.a.b")


@pytest.fixture
def here(vhost: str, tmp_path: Path) -> Iterator[tuple[shmbroker.Broker, shmbroker.Broker]]:
    """A broker, and a program that has come to it over TCP."""
    with shmbroker.connect(f"shm://{vhost}", create=True, name="test") as broker:
        site = Site(broker, tmp_path)
        url = f"tcp://127.0.0.1:{site.port}"
        with (
            site.served(),
            shmbroker.connect(url, user="site", password="correct horse battery") as far,
        ):
            yield broker, far


def test_tables_of_the_broker_are_its_own(
    here: tuple[shmbroker.Broker, shmbroker.Broker],
) -> None:
    broker, far = here
    there = {each.name for each in broker.queues()}
    for name in TABLES:
        if name not in there:
            broker.declare_queue(name, last_value=True)
        for named in (
            lambda name=name: far.queue(name),
            lambda name=name: far.declare_queue(name),
            lambda name=name: far.delete_queue(name, force=True),
            lambda name=name: far.bind("news", name, "a"),
        ):
            with pytest.raises(InvalidArgument, match="is the broker's own"):
                named()
    assert far.queues() == []


def test_others_are_not(here: tuple[shmbroker.Broker, shmbroker.Broker]) -> None:
    broker, far = here
    for name in OTHERS:

        broker.declare_queue(name)
        assert far.queue(name).statistics().depth == 0
    assert {each.name for each in far.queues()} == set(OTHERS)
