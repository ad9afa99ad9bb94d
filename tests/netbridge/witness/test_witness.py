"""Witnesses as real processes: what they grant, what they know after kill -9, what they refuse."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

import pytest

from shmbroker.ipc.instance.config.config import FILE
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.broker import witness
from shmbroker.netbridge.broker.witness import LOG, STATUS
from shmbroker.netbridge.election.question import Answer, Renew, Renewed, Stale, Step, Verdict
from shmbroker.netbridge.link.handshake import Near
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role
from shmbroker.netbridge.witness import state
from shmbroker.netbridge.witness.state import State
from shmbroker.netbridge.witness.witness import Witness
from shmbroker.perf.machine.process import Process
from tests.support.until import until
from tests.support.witness import (
    BOTH,
    CREDENTIAL,
    HOUR_MS,
    NODE,
    PATIENCE_SECONDS,
    Member,
    Place,
    alone,
)

KILLS = int(os.environ.get("WITNESS_KILLS", "6"))
Make = Callable[..., Member]


CALM: Final = LinkTimes(heartbeat_interval=10.0)
"""Who is starved for a second on a busy machine is not silent: its question would be forgotten."""


def calm(place: Place, interval: float = CALM.heartbeat_interval) -> Place:
    """Before it begins."""
    with (place.folder / FILE).open("a") as file:
        file.write(f'[link-defaults]\nheartbeat-interval = "{interval:g}s"\n')
    return place


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A witness that runs; who has stood still for three of these seconds is silent."""
    interval = getattr(request, "param", CALM.heartbeat_interval)
    made = calm(Place(tmp_path / "witness"), interval)
    made.begin()
    yield made
    made.kill()


@pytest.fixture
def member(place: Place) -> Iterator[Make]:
    made: list[Member] = []

    def one(name: str, *others: Place, **more: object) -> Member:
        made.append(Member(name, [place, *others], **{"times": CALM} | more))  # type: ignore[arg-type]
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture
def live(place: Place, tmp_path: Path) -> Iterator[Callable[[int], Process]]:
    """Member a in a process of its own: it has renewed a lease of so many ms, once."""
    made: list[Process] = []

    def one(lease_ms: int) -> Process:
        def run() -> int:
            Member("a", [place], times=CALM).wait().renew(lease_ms=lease_ms)
            (tmp_path / "renewed").touch()
            Event().wait()
            return 0

        made.append(Process(run, tmp_path / "live.errors"))
        until((tmp_path / "renewed").exists)
        return made[-1]

    yield one
    for each in made:
        each.go_on()
        each.kill()


def test_it_grants_what_the_rules_allow(member: Make) -> None:
    a, b = member("a").wait(), member("b").wait()
    assert a.renew().version == 1
    assert b.ask(alone(2, "b")).reason == "it sees a"
    a.release(1)
    assert b.answer(b.attempt).verdict is Verdict.YES, "it answers again by itself"
    assert b.ask(alone(2, "b"), Step.PREPARE).verdict is Verdict.YES
    assert b.ask(alone(2, "b"), Step.ACCEPT).verdict is Verdict.YES
    a.say(Renew(NODE, BOTH, 1, 99, HOUR_MS))
    _, said = a.said.get(timeout=PATIENCE_SECONDS)
    assert said == Stale(NODE, 1, alone(2, "b"), is_decided=False)


def test_it_answers_while_a_disk_keeps_it_from_showing_who_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, goes_on = calm(Place(tmp_path / "witness")), tmp_path / "goes on"

    def waits(path: Path, content: dict[str, object]) -> None:
        until(goes_on.exists)
        write_whole(path, content)

    place.begin(lambda: monkeypatch.setattr(witness, "write_whole", waits))  # in its process
    try:
        goes_on.touch()
        until((place.folder / STATUS).exists)  # it listens
        goes_on.unlink()
        member = Member("a", [place], times=CALM).wait()
        assert member.renew().version == 1
        assert member.ask(alone(2, "a")).verdict is Verdict.YES
        goes_on.touch()
        until(lambda: "a" in [name for _, name in read_whole(place.folder / STATUS)["links"]])
        member.close()
    finally:
        place.kill()


def test_a_live_that_is_killed_has_released_its_lease(
    live: Callable[[int], Process], member: Make
) -> None:
    process, b = live(HOUR_MS), member("b").wait()
    assert b.ask(alone(2, "b")).reason == "it sees a"
    process.kill()
    assert b.answer(b.attempt).verdict is Verdict.YES


@pytest.mark.parametrize("place", [1], indirect=True)
def test_a_live_that_is_silent_has_its_lease_still(
    live: Callable[[int], Process], place: Place, member: Make
) -> None:
    process, b = live(HOUR_MS), member("b").wait()
    process.stop()
    until(lambda: "silence" in (place.folder / LOG).read_text())
    assert b.ask(alone(2, "b")).reason == "it sees a"


@pytest.mark.parametrize("place", [1], indirect=True)
def test_a_lease_that_ends_is_told_without_being_asked_again(
    live: Callable[[int], Process], member: Make
) -> None:
    process, b = live(2000), member("b").wait()
    process.stop()
    assert b.ask(alone(2, "b")).reason == "it sees a"
    assert b.answer(b.attempt).verdict is Verdict.YES


def test_a_live_that_closes_in_good_order_has_released_its_lease(member: Make) -> None:
    a, b = member("a").wait(), member("b").wait()
    a.renew()
    assert b.ask(alone(2, "b")).reason == "it sees a"
    a.voters.close()
    assert b.answer(b.attempt).verdict is Verdict.YES


def test_nodes_may_have_members_of_one_name(member: Make) -> None:
    other = b"O" * 16
    one, two = member("a").wait(), member("a").wait()
    for _ in range(3):
        assert one.renew(lease_ms=HOUR_MS).node == NODE
        two.say(Renew(other, alone(9, "a"), 1, 7, HOUR_MS))
        _, said = two.said.get(timeout=PATIENCE_SECONDS)
        assert said == Renewed(other, 9, 1, 7)
    assert not any(each.get("state") == "lost" for each in (*one.lines, *two.lines))


def test_a_process_that_is_begun_again_is_not_the_live_that_was(member: Make) -> None:
    """Its link is new; over the old one, which is silent, the lease was renewed."""
    a, b = member("a").wait(), member("b").wait()
    a.renew(lease_ms=500)
    assert b.ask(alone(2, "b")).reason == "it sees a"
    again = member("a").wait()
    again.ask(alone(2, "a"))
    assert b.answer(b.attempt).verdict is Verdict.YES
    assert a.up, "the old link is there still"


def test_a_majority_of_three_grants_with_one_of_them_gone(tmp_path: Path, member: Make) -> None:
    others = [calm(Place(tmp_path / f"witness{number}")) for number in (2, 3)]
    for each in others:
        each.begin()
    a = member("a", *others).wait()
    a.say(Renew(NODE, BOTH, 1, 1, 0))
    for _ in a.names:
        a.said.get(timeout=PATIENCE_SECONDS)
    others[0].kill()
    a.voters.close()
    b = member("b", *others)
    b.wait(b.names[0], b.names[2])
    assert b.elected(alone(2, "b"))
    others[1].kill()


def test_a_witness_that_was_killed_knows_all_that_it_has_granted(
    place: Place, member: Make
) -> None:
    """Killed at any moment: what it has said yes to stands, and nobody else gets that epoch."""
    chance = random.Random(5)
    a, b = member("a").wait(), member("b").wait()
    a.renew(lease_ms=0)
    a.voters.close()
    epoch, yes = 2, 0
    for _ in range(KILLS):
        b.wait()
        asks = chance.randrange(1, 12)
        for _ in range(asks):
            for step in (Step.PREPARE, Step.ACCEPT):
                b.say(b.question(alone(epoch, "b"), step))
            epoch += 1
        granted = 0
        for _ in range(chance.randrange(2 * asks + 1)):
            _, said = b.said.get(timeout=PATIENCE_SECONDS)
            if isinstance(said, Answer) and said.step is Step.ACCEPT:
                assert said.verdict is Verdict.YES, said
                granted = max(granted, said.accepted[1].epoch if said.accepted else 0)
                yes += 1
        assert place.process is not None
        place.process.kill()
        while not b.said.empty():
            _, said = b.said.get()
            if isinstance(said, Answer) and said.step is Step.ACCEPT and said.accepted:
                granted = max(granted, said.accepted[1].epoch)
        ledger = state.read(place.folder)[1][NODE]
        assert ledger.newest is not None
        assert ledger.newest.epoch >= granted
        epoch = ledger.newest.epoch + 1
        until(lambda: not b.up)
        place.begin()
    b.wait()
    c = member("c").wait()
    assert c.ask(alone(epoch - 1, "c"), Step.ACCEPT, 9).verdict is Verdict.NO
    assert yes > KILLS


def test_another_password_is_refused(member: Make) -> None:
    keys = (Stretched("votes", "another password"),)
    stranger = member("b", credential=Credential("votes", "votes", (Role.WITNESS,), keys))
    until(lambda: any(each.get("state") == "refused" for each in stranger.lines))
    assert not stranger.up


def test_who_is_refused_or_lost_while_it_shakes_hands_is_no_matter_to_others(
    place: Place, member: Make, tmp_path: Path
) -> None:
    def shakes_hands() -> int:
        Near.take = lambda *_: os._exit(0)  # type: ignore[assignment, return-value]
        Member("b", [place], times=CALM).wait()
        return 1

    a = member("a").wait()
    stranger = member("b", credential=replace(CREDENTIAL, user="nobody"))
    until(lambda: any(each.get("state") == "refused" for each in stranger.lines))
    lost = Process(shakes_hands, tmp_path / "lost.errors")
    assert lost.has_ended(PATIENCE_SECONDS)
    assert lost.status == 0
    a.renew()
    member("c").wait()


def test_a_witness_without_its_network_thread_says_so_and_ends(tmp_path: Path) -> None:
    """It would hold its state, and answer nobody."""
    place = calm(Place(tmp_path / "deaf"))

    def fails(self: Witness, end: object) -> None:
        raise ValueError("for a test")

    process = place.begin(partial(setattr, Witness, "came", fails))
    a = Member("a", [place], times=CALM)
    assert process.has_ended(PATIENCE_SECONDS)
    assert process.status == 1
    a.close()
    last = (place.folder / LOG).read_text().splitlines()
    assert any('"failed"' in line and "for a test" in line for line in last)


def test_who_asks_in_the_name_of_another_is_cut_off(member: Make) -> None:
    a, b = member("a").wait(), member("b").wait()
    a.renew()
    b.name = "a"
    b.say(b.question(alone(2, "a")))
    until(lambda: any(each.get("state") == "lost" for each in b.lines))
    assert a.renew().version == 1


def test_a_witness_that_cannot_write_says_nothing_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = calm(Place(tmp_path / "full"))

    def fails(self: State, changes: object) -> None:
        raise OSError(28, "No space left on device", str(place.folder / "ledgers"))

    process = place.begin(partial(setattr, State, "keep", fails))
    a = Member("a", [place], times=CALM).wait()
    a.say(Renew(NODE, BOTH, 1, 1, 0))
    assert process.has_ended(PATIENCE_SECONDS)
    assert process.status == 1
    assert a.hears_nothing(0.0)
    a.close()
