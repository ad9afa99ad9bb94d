"""One who announces and one who hears, by each means, in this process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from shmbroker.netbridge.discovered.announcer import Announcer
from shmbroker.netbridge.discovered.discoverer import Discoverer
from shmbroker.netbridge.discovered.registry import file_of
from shmbroker.netbridge.discovery.entries import Entry
from shmbroker.netbridge.discovery.option import Broadcast, Discovery, Means
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.perf.machine.port import free_port

PATIENCE = 60.0
KEYS = (Stretched("town", "correct horse battery"),)
OTHERS = (Stretched("town", "another horse battery"),)
NODE = b"N" * 16


@dataclass
class Place:
    means: Means
    opened: ExitStack
    told: SimpleQueue[tuple[Entry, ...]] = field(default_factory=SimpleQueue)
    lines: list[dict[str, Any]] = field(default_factory=list)

    def looks(self, refresh: float = 1.0) -> Discoverer:
        made = Discoverer(
            Discovery("lan", self.means, refresh, "town"), KEYS, self.told.put,
            lambda line: self.lines.append(dict(line)),
        )  # fmt: skip
        self.opened.callback(made.close)
        return made

    def announces(
        self, name: str = "east", keys: tuple[Stretched, ...] = KEYS, *, is_live: bool = True
    ) -> Announcer:
        broadcast = Broadcast("lan", self.means, -1, 0.1, single(f"tcp://{name}:61619"), "town")
        made = Announcer(broadcast, keys, name, lambda line: self.lines.append(dict(line)))
        self.opened.callback(made.close)
        made.becomes(NODE, 1, is_live=is_live)
        return made

    def until(self, *names: str) -> tuple[Entry, ...]:
        late = time.monotonic() + PATIENCE
        while True:
            try:
                found = self.told.get(timeout=max(0.0, late - time.monotonic()))
            except Empty:
                raise AssertionError(f"{names} were not found: {self.lines}") from None
            if tuple(each.name for each in found) == names:
                return found

    def states(self) -> list[str]:
        return [str(line["state"]) for line in self.lines]


@pytest.fixture(params=["udp", "registry"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    means = Means("registry", registry=tmp_path, channel="town")
    if request.param == "udp":
        means = Means("udp", "231.7.7.7", free_port(), "127.0.0.1")
    with ExitStack() as opened:
        yield Place(means, opened)


def waits_for(holds: Callable[[], bool]) -> None:
    late = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < late
        time.sleep(0.02)  # nothing tells that a counter has changed


@pytest.mark.parametrize("is_first", [True, False])
def test_in_any_order(place: Place, is_first: bool) -> None:
    if is_first:
        place.announces()
    place.looks()
    if not is_first:
        place.announces()
    [entry] = place.until("east")
    assert entry == Entry(NODE, "east", "tcp://east:61619", True, 1)


def test_an_entry_expires_and_returns(place: Place) -> None:
    looks = place.looks()
    announces = place.announces()
    place.until("east")
    announces.close()
    assert place.until() == looks.found == ()
    place.announces()
    place.until("east")
    assert place.states() == ["found", "expired", "found"]


def test_a_backup_becomes_live(place: Place) -> None:
    place.looks()
    announces = place.announces(is_live=False)
    assert not place.until("east")[0].is_live
    announces.becomes(NODE, 2, is_live=True)
    [entry] = place.until("east")
    assert (entry.is_live, entry.epoch) == (True, 2)


def test_strangers_are_counted(place: Place) -> None:
    looks = place.looks()
    place.announces("west", OTHERS)
    waits_for(lambda: looks.show()["ignored"]["strangers"] > 2)
    place.announces("east")
    place.until("east")
    assert place.states() == ["strangers", "found"]


def test_a_flood_of_strangers_does_not_end_it() -> None:
    with ExitStack() as opened:
        place = Place(Means("udp", "231.7.7.7", free_port(), "127.0.0.1"), opened)
        looks = place.looks()
        place.announces("east")
        place.until("east")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.setsockopt(
                socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1")
            )
            for size in (0, 1, 39, 40, 41, 1200, 1201, 60_000) * 100:
                stranger.sendto(os.urandom(size), (place.means.group, place.means.port))
        waits_for(lambda: looks.show()["ignored"]["strangers"] > 100)
        place.announces("west")
        place.until("east", "west")


def test_files_that_are_none_of_ours(tmp_path: Path) -> None:
    """A link, a pipe that nobody writes, a folder, a file that is too long: nothing waits."""
    means = Means("registry", registry=tmp_path, channel="town")
    names = [file_of(means, bytes([number]) * 16, "x") for number in range(4)]
    names[0].symlink_to("/dev/zero")
    os.mkfifo(names[1])
    names[2].mkdir()
    names[3].write_bytes(os.urandom(1 << 20))
    (tmp_path / "town.x").write_text("x")
    with ExitStack() as opened:
        place = Place(means, opened)
        looks = place.looks()
        place.announces("east")
        place.until("east")
        assert looks.show()["ignored"]["strangers"] == 1


def test_another_channel_is_not_heard(tmp_path: Path) -> None:
    with ExitStack() as opened:
        here = Place(Means("registry", registry=tmp_path, channel="here"), opened)
        there = Place(Means("registry", registry=tmp_path, channel="there"), opened)
        there.announces("west")
        here.looks()
        here.announces("east")
        assert len(here.until("east")) == 1
        moved = file_of(there.means, NODE, "west")
        moved.rename(file_of(here.means, NODE, "west"))  # the channel is signed, too
        waits_for(lambda: "strangers" in here.states())


def test_what_is_not_there_is_one_line_and_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    with ExitStack() as opened:
        place = Place(Means("registry", registry=folder, channel="town"), opened)
        place.looks()
        place.announces("east")
        waits_for(lambda: {"hears nothing", "not announced"} <= set(place.states()))
        time.sleep(1.5)  # several tries of both
        folder.mkdir()
        place.until("east")
        assert sorted(place.states()) == [
            "announced again", "found", "hears again", "hears nothing", "not announced",
        ]  # fmt: skip


def test_a_file_is_gone_with_its_broker(tmp_path: Path) -> None:
    with ExitStack() as opened:
        place = Place(Means("registry", registry=tmp_path, channel="town"), opened)
        place.looks()
        announces = place.announces("east")
        place.until("east")
        assert len(list(tmp_path.glob("town.*"))) == 1  # it may be being written anew
        announces.close()
        assert list(tmp_path.iterdir()) == []
