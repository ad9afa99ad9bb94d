"""Every damage to a journal, every way to become live, twice in a row.

What was confirmed is whole again after the last one, or the journal is refused with the segment that
is damaged: nothing is missing in silence.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ipc.takeover_damage import (
    DAMAGES,
    after_a_power_loss,
    is_noted,
    is_whole,
    live,
    publish,
    segments,
    until,
    what_is_there,
)

WHICH = {"oldest": 0, "middle": 2, "newest": -1}


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_takeover_writes_anew_what_the_journal_has_lost(
    vhost: str, tmp_path: Path, damage: str, which: str
) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    with live(vhost, folder, 1):
        confirmed = publish(vhost)
        until(lambda: is_noted(folder), "what was reached is noted")
        DAMAGES[damage](segments(folder)[WHICH[which]])
    with live(vhost, folder, 2, in_order=True):
        until(lambda: is_whole(folder), "the journal is whole")
    with live(vhost, folder, 3, prepared=True):
        until(lambda: is_whole(folder), "the journal is whole")
    assert what_is_there(vhost) == confirmed
    assert after_a_power_loss(vhost, folder, 4) == confirmed
    assert after_a_power_loss(vhost, folder, 5) == confirmed


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_takeover_that_dies_at_once_hides_nothing(
    vhost: str, tmp_path: Path, damage: str, which: str
) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    with live(vhost, folder, 1):
        confirmed = publish(vhost)
        until(lambda: is_noted(folder), "what was reached is noted")
        DAMAGES[damage](segments(folder)[WHICH[which]])
    for epoch in (2, 3):
        with live(vhost, folder, epoch):
            pass
    found = after_a_power_loss(vhost, folder, 4)
    assert found == confirmed or "journal" in found, found


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("damage", DAMAGES)
def test_without_a_takeover_it_is_refused(
    vhost: str, tmp_path: Path, damage: str, which: str
) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    with live(vhost, folder, 1):
        publish(vhost)
        until(lambda: is_noted(folder), "what was reached is noted")
        DAMAGES[damage](segments(folder)[WHICH[which]])
    for epoch in (2, 3):
        found = after_a_power_loss(vhost, folder, epoch)
        assert isinstance(found, str), "refused"
