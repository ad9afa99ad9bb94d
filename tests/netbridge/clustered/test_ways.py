"""Links towards other nodes while these move, and while something cannot be made or looked at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.base.errors import DiskFull, TooMany
from shmbroker.netbridge.cluster.said import Left
from shmbroker.netbridge.clustered import towards
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.wire.words import Standing
from tests.netbridge.cluster.talk import node_of

OURS, WEST, NORTH = node_of("east"), node_of("west"), node_of("north")
OLD, NEW = "tcp://127.0.0.1:1", "tcp://127.0.0.1:2"


class Linked:
    """In the place of a link: it has drained when it ends."""

    has_drained = True
    state = "up"

    def __init__(self, uri: str) -> None:
        self.uri, self.is_stopped, self.starts = uri, False, 0
        self.over: Callable[[], None] = lambda: None

    def start(self) -> None:
        self.starts += 1

    def stop(self) -> None:
        self.is_stopped = True
        self.over()


class Scene:
    """The thread and the worker are one's own: what is to be done is done by `works`."""

    def __init__(self, broker: shmbroker.Broker, folder: Path) -> None:
        self.given: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self.lines: list[dict[str, Any]] = []
        self.hops: dict[bytes, bytes] = {}
        self.machine: Any = SimpleNamespace(
            lives={}, left={}, forgotten={}, paths={}, orphans=frozenset(),
            heir=lambda node: node if node in self.machine.lives else None,
            next_hop=lambda node: self.hops.get(node, node), there=[],
        )  # fmt: skip
        self.setup: Any = SimpleNamespace(
            ours=Identity(bytes(16), bytes(16), "east", Standing.NONE, 0), ways=folder / "ways",
            cluster=SimpleNamespace(name="town", hops=2, allow_direct_connections_only=True),
            credential=None, times=None, pair=None,
        )  # fmt: skip
        self.broker = broker
        self.ways = self.begun()

    def begun(self) -> towards.Ways:
        thread: Any = SimpleNamespace(call=lambda step: step())
        worker: Any = SimpleNamespace(do=lambda work, told: self.given.append((work, told)))
        return towards.Ways(
            thread, worker, self.setup, self.broker, OURS,
            lambda line: self.lines.append(dict(line)), lambda: None,
        )  # fmt: skip

    def looks(self, **lives: str) -> None:
        self.machine.lives = {node_of(name): SimpleNamespace(uri=uri)
                              for name, uri in lives.items()}  # fmt: skip
        self.ways.looks(self.machine)

    def works(self) -> None:
        while self.given:
            work, told = self.given.popleft()
            try:
                made = work()
            except Exception as error:  # noqa: BLE001  # as the worker has it
                made = error
            told(made)

    def link(self, node: bytes = WEST) -> Any:
        return self.ways._ways[node].link


@pytest.fixture
def scene(
    broker: shmbroker.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    monkeypatch.setattr(towards, "Link", lambda _, name, uri, *more, **others: Linked(uri))
    monkeypatch.setattr(towards.options, "plan", lambda cluster, uri: uri)
    return Scene(broker, tmp_path)


def test_a_live_that_moves_while_its_link_is_made_is_reached_where_it_is(scene: Scene) -> None:
    scene.looks(west=OLD)
    scene.looks(west=NEW)
    scene.works()
    scene.looks(west=NEW)
    scene.works()
    assert (scene.link().uri, scene.link().is_stopped) == (NEW, False)


def test_who_leaves_makes_no_way_to_a_node_that_is_new(scene: Scene) -> None:
    scene.looks(west=OLD)
    scene.works()
    scene.ways.makes_none = True
    scene.looks(west=NEW, north=OLD)
    scene.works()
    assert scene.ways.made == {WEST}
    assert scene.link().uri == NEW


def test_a_link_that_has_given_up_is_tried_again_when_its_node_has_come(scene: Scene) -> None:
    scene.looks(west=OLD, north=NEW)
    scene.works()

    def starts(*there: tuple[bytes, bytes]) -> list[int]:
        """Who is there, in which process; how often each link was started."""
        scene.machine.there = [SimpleNamespace(node=node, incarnation=process)
                               for node, process in there]  # fmt: skip
        scene.looks(west=OLD, north=NEW)
        return [scene.link(WEST).starts, scene.link(NORTH).starts]

    assert starts((WEST, b"1")) == [1, 0]
    assert starts((WEST, b"1")) == [1, 0]
    assert starts((WEST, b"2"), (NORTH, b"3")) == [2, 1]
    assert starts((NORTH, b"3")) == [2, 1]
    assert starts((WEST, b"2"), (NORTH, b"3")) == [3, 1]


def test_a_way_that_cannot_be_made_is_told_once_and_tried_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(scene.broker, "declare_queue", refuses)
        for _ in range(3):
            scene.looks(west=OLD)
            scene.works()
    assert [line["state"] for line in scene.lines] == ["no way"]
    scene.looks(west=OLD)
    scene.works()
    assert scene.link().uri == OLD


def test_a_hop_that_could_not_be_kept_is_kept_the_next_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.hops[WEST] = NORTH

    def refuses(*_: object, **__: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(towards, "write_whole", refuses)
        scene.looks(west=OLD, north=NEW)
        scene.works()
    scene.looks(west=OLD, north=NEW)
    scene.works()
    assert scene.link().uri == NEW
    assert scene.begun()._hops == {WEST: NORTH}


def test_what_goes_home_waits_until_it_is_kept_that_it_does(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    home: list[bytes] = []
    monkeypatch.setattr(scene.ways, "_comes_home", lambda node, patience: home.append(node))
    scene.broker.declare_queue(towards.towards("town", WEST))
    scene.machine.orphans = frozenset([WEST])

    def refuses(*_: object, **__: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(towards, "write_whole", refuses)
        for _ in range(2):
            scene.looks()
            scene.works()
    assert [line["state"] for line in scene.lines] == ["no way"]
    assert home == []
    scene.looks()
    scene.works()
    assert home == [WEST]
    assert scene.begun()._hops == {WEST: OURS}


@pytest.mark.parametrize("is_met", [True, False])
def test_what_waits_for_one_that_was_scaled_down_to_a_forgotten_one_is_routed_anew(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_met: bool
) -> None:
    """Nobody has what it has had.  Another one that may have been back since is waited for.

    `is_met`: the forgotten one was, and there is a queue towards it.
    """
    south, home = node_of("south"), set[bytes]()
    monkeypatch.setattr(scene.ways, "_comes_home", lambda node, patience: home.add(node))
    for node in (WEST, NORTH, south) if is_met else (WEST, south):
        scene.broker.declare_queue(towards.towards("town", node))
    scene.machine.left = {node: Left(node, 1, NORTH) for node in (WEST, south)}
    scene.ways._hops = {south: south}
    scene.looks()
    scene.works()
    assert home == set(), "the one that got its messages may come"
    scene.machine.orphans = frozenset([NORTH])
    scene.looks()
    scene.works()
    assert scene.ways.orphans == {WEST, NORTH}
    assert home == ({WEST, NORTH} if is_met else {WEST})

    scene.machine.orphans = frozenset()  # nobody remembers, and it is started anew
    again, former = scene.begun(), scene.ways
    again.looks(scene.machine)
    assert again.orphans == (former.orphans if is_met else {WEST})


def test_what_was_not_routed_anew_goes_to_the_heir_that_is_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    home: list[bytes] = []
    monkeypatch.setattr(scene.ways, "_comes_home", lambda node, patience: home.append(node))
    scene.broker.declare_queue(towards.towards("town", WEST)).publish(b"")
    scene.machine.left = {WEST: Left(WEST, 1, NORTH)}
    scene.machine.heir = lambda node: NORTH
    scene.ways._is_chain, scene.ways._hops = False, {WEST: OURS}
    scene.looks(north=NEW)
    assert (home, scene.ways._ways[WEST].hop) == ([], NORTH)


def test_a_queue_that_cannot_be_looked_at_counts_as_one_with_messages(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scene.ways._is_empty(WEST), "it is not there"
    scene.broker.declare_queue(towards.towards("town", WEST)).publish(b"")

    def refuses(*_: object) -> None:
        raise TooMany("no room")

    monkeypatch.setattr(scene.broker, "queue", refuses)
    assert not scene.ways._is_empty(WEST)


def test_a_name_that_a_program_has_made_up_leads_to_nobody(scene: Scene) -> None:
    for name in (towards.towards("town", WEST), "$sf.town.west", "$sf.town.AB", "$sf.other.00"):
        scene.broker.declare_queue(name)
    assert scene.ways.led_to == {WEST}
