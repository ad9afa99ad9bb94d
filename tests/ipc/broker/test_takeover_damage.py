"""Every damage to a journal, every way to become live, twice in a row.

What was confirmed is whole again after the last one, or the journal is refused, with the segment
that is damaged: nothing is missing in silence.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import shmbroker
from tests.support.takeover_damage import (
    DAMAGES,
    after_a_power_loss,
    is_noted,
    is_whole,
    live,
    publish,
    segments,
    told,
    until,
    what_is_there,
)

WHICH = {"oldest": 0, "middle": 2, "newest": -1}


def copied(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, folder.parent / name))


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_a_journal_has_lost_is_written_anew_or_it_is_refused(
    vhost: str, tmp_path: Path, damage: str, which: str
) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    with live(vhost, folder, 1):
        confirmed = publish(vhost)
        until(lambda: is_noted(folder), "what was reached is noted")
        DAMAGES[damage](segments(folder)[WHICH[which]])
    cold, hasty = copied(folder, "cold"), copied(folder, "hasty")

    for epoch in (2, 3):  # they may die before they have looked through the journal
        with live(vhost, hasty, epoch):
            pass
    with live(vhost, folder, 4, in_order=True):
        until(lambda: is_whole(folder), "the journal is whole")
    assert any("written anew from memory" in text for text in told(vhost)), told(vhost)
    with live(vhost, folder, 5, prepared=True):
        until(lambda: is_whole(folder), "the journal is whole")
    assert what_is_there(vhost) == confirmed

    for epoch in (6, 7):
        assert isinstance(after_a_power_loss(vhost, cold, epoch), str), "refused"
    found = after_a_power_loss(vhost, hasty, 8)
    assert isinstance(found, str) or found == confirmed
    for epoch in (9, 10):
        assert after_a_power_loss(vhost, folder, epoch) == confirmed


def test_a_journal_that_is_gone_as_a_whole_is_written_anew(vhost: str, tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    with live(vhost, folder, 1):
        confirmed = publish(vhost)
        for path in (*folder.glob("*.journal"), folder / "reached"):
            path.unlink()
    with live(vhost, folder, 2):
        until(lambda: "1073 confirmed messages" in str(told(vhost)), "all are written anew")
    assert after_a_power_loss(vhost, folder, 3) == confirmed


def test_ids_that_a_lost_segment_had_are_remembered(vhost: str, tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()

    def again(number: int) -> int | None:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            queue = broker.declare_queue("ids", durable=True, duplicate_ids=512)
            position: int | None = queue.publish(b"x" * 400, message_id=str(number))
            return position

    with live(vhost, folder, 1):
        publish(vhost)
        for number in range(300):
            again(number)
        with shmbroker.connect(f"shm://{vhost}") as broker:
            for _ in range(300):
                broker.queue("ids").get(timeout=0).ack()
        for path in segments(folder)[-3:-1]:
            path.unlink()
    with live(vhost, folder, 2, in_order=True):
        until(lambda: is_whole(folder), "the journal is whole")
    assert isinstance(after_a_power_loss(vhost, folder, 3), dict)
    with live(vhost, folder, 4):
        assert [again(number) for number in range(300)] == [None] * 300
