"""What a scrape says of backups that brokers run for each other, and of one that scales down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.cli.colocated import FILE as COLOCATED
from shmbroker.cli.metrics.exposition import text
from shmbroker.cli.scale_down import FILE as SCALE_DOWN
from shmbroker.ipc.instance import process
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
