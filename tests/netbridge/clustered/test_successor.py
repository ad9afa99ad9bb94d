"""Programs wait at the node that is to have all that another one has, until that has told it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.netbridge.cluster.codec import decode
from shmbroker.netbridge.cluster.said import Answers, Holds, Leaving, Makes
from shmbroker.netbridge.clustered import successor as module
from shmbroker.netbridge.clustered.successor import Successor
from shmbroker.netbridge.wire.frame import Talk

WEST, NORTH = b"west", b"north"


class At:
    """A link to a process."""

    def __init__(self, scene: Scene, process: bytes) -> None:
        self._scene, self._process = scene, process
        scene.links.append(self)

    def hears(self, word: Callable[[int], Leaving]) -> str:
        """Why it is not done."""
        who: Any = SimpleNamespace(incarnation=self._process) if self._process else None
        self._scene.successor.heard(self, who, word(1))  # type: ignore[arg-type]
        return self._scene.answers.pop()

    def say(self, frame: Talk) -> None:
        what = decode(frame.body)
        assert isinstance(what, Answers)
        self._scene.answers.append(what.why)

    def lost(self) -> None:
        links = self._scene.links
        links.remove(self)
        is_last = all(each._process != self._process for each in links)
        self._scene.successor.gone(self, self._process if is_last else b"")  # type: ignore[arg-type]


class Scene:
    def __init__(self) -> None:
        self.links: list[At] = []
        self.answers: list[str] = []
        self.is_held = False
        setup: Any = SimpleNamespace(programs="", group_name="")
        at_once: Any = SimpleNamespace(do=lambda work, then: then(work()))
        looking: Any = SimpleNamespace(look=lambda: None)
        broker: Any = object()
        self.successor = Successor(
            setup, at_once, lambda: broker, self._holds, lambda what, answer: answer(""), looking,
            lambda found: None,
        )

    def _holds(self, is_held: bool) -> None:
        self.is_held = is_held


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(module, "made", lambda broker, rows: "")
    return Scene()


def holds(number: int) -> Leaving:
    return Holds(number, True)


def lets_go(number: int) -> Leaving:
    return Holds(number, False)


def makes(number: int) -> Leaving:
    return Makes(number, b"")


def test_they_wait_as_long_as_there_is_a_link_to_the_node_that_leaves(scene: Scene) -> None:
    first, second = At(scene, WEST), At(scene, WEST)
    assert first.hears(holds) == ""
    first.lost()
    assert scene.is_held
    assert second.hears(makes) == ""
    assert second.hears(lets_go) == ""
    assert not scene.is_held


def test_they_go_on_when_it_is_lost_and_it_tells_nothing_more(scene: Scene) -> None:
    first, other = At(scene, WEST), At(scene, NORTH)
    assert other.hears(holds) == ""
    assert first.hears(holds) == ""
    first.lost()
    assert scene.is_held, "for the other one"
    assert other.hears(makes) == ""
    assert "were lost" in At(scene, WEST).hears(makes)
    assert At(scene, WEST).hears(lets_go) == ""
    assert At(scene, WEST).hears(makes) == ""
    other.lost()
    assert not scene.is_held


def test_nobody_waits_for_one_that_is_not_known(scene: Scene) -> None:
    assert "not known yet" in At(scene, b"").hears(holds)
    assert not scene.is_held
