"""What a scrape says of backups that brokers run for each other, and of one that scales down."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from shmbroker.cli.colocated import FILE as COLOCATED
from shmbroker.cli.metrics.exposition import text
from shmbroker.cli.scale_down import FILE as SCALE_DOWN
from shmbroker.ipc.instance import ordering, process
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.status import RUN, Sign, Status
from shmbroker.ipc.instance.whole import write_whole
from tests.cli.metrics.samples import Samples
from tests.conftest import vhost_for_a_while


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """The folder of an instance that shows itself as live: this process."""
    with vhost_for_a_while() as vhost:
        create(tmp_path / "one", {"instance.vhost": vhost})
        sign = Sign(tmp_path / "one")
        sign.show(Status("live", epoch=1, process=process.this()))
        yield tmp_path / "one"
        sign.close()


def says(folder: Path, file: str, **told: object) -> Samples:
    write_whole(folder / RUN / file, {"process": process.this().pid} | told)
    return Samples(text(folder))


def test_backups_that_are_hosted(live: Path) -> None:
    runs = [{"name": "hosted-1", "for": "west"}]
    found = says(live, COLOCATED, runs=runs, backup="", at="", why="nobody has room")
    assert (found.of("hosted_backups"), found.of("hosted_backup_up")) == (1, 0)
    found = says(live, COLOCATED, runs=[], backup="hosted-1", at="west", why="")
    assert (found.of("hosted_backups"), found.of("hosted_backup_up")) == (0, 1)
    assert says(live, COLOCATED, runs=[]).all("hosted_backup_up") == []
    of_before = says(live, COLOCATED, runs=runs, process=1)
    assert of_before.all("hosted_backups") == []


def test_how_far_a_scale_down_is(live: Path) -> None:
    moving = {"queues": 1, "of-queues": 2, "messages": 300, "of-messages": 1000}
    found = says(live, SCALE_DOWN, to="west", **moving)
    assert found.of("scale_down_messages") == 1000
    assert found.of("scale_down_moved_messages") == 300
    assert says(live, SCALE_DOWN, to="", **moving).all("scale_down_messages") == []


def test_a_cluster_that_was_left_is_told_no_more(live: Path) -> None:
    before = signal.signal(ordering.SIGNAL, signal.SIG_IGN)  # a broker says it anew then
    try:
        _tells_of_its_cluster(live)
    finally:
        signal.signal(ordering.SIGNAL, before)


def _tells_of_its_cluster(live: Path) -> None:
    here, far = (
        {"name": name, "node": name * 8, "state": state, "backups": []}
        for name, state in (("a", "here"), ("b", "missing"))
    )
    told = {"cluster": "town", "nodes": [here, far], "lives": 2, "can-vote": False}
    assert says(live, "cluster", **told, duplicates=[]).all("cluster_node_up") == []
    file = live / FILE
    file.write_text(file.read_text() + "\n[cluster.town]\nmax-hops = 1\n")
    found = says(live, "cluster", **told, duplicates=[])
    assert found.of("cluster_node_up", node="a/aaaaaaaa") == 1
    assert found.of("cluster_node_up", node="b/bbbbbbbb") == 0
    ended = Status("stopped")
    write_whole(live / RUN / "status", asdict(ended))
    assert Samples(text(live)).of("cluster_node_up", node="a/aaaaaaaa") == 0
