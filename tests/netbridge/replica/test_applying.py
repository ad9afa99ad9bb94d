"""What comes to a replica is applied in its turn, in whichever thread, and answered for in time."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest

from shmbroker.ipc.base.errors import DiskFull, Error, JournalDamaged, JournalFailed, MessageGone
from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.replica.applying import AT_ONCE_BYTES, Applying
from shmbroker.netbridge.replica.following import Carrier, Following
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.wire.words import ReplicaAck
from tests.support.host import PATIENCE

LITTLE, MUCH = b"little", bytes(AT_ONCE_BYTES + 1)


class FakeApplier:
    """Its frames have numbers from 1 on."""

    def __init__(self) -> None:
        self.done: list[tuple[int, int]] = []
        """Bytes of each, and the thread."""
        self.written = self.synced = 0
        self.syncs = 0
        self.may_go_on = Event()
        self.may_go_on.set()
        self.fails: Error | None = None

    def frames(self, shipped: bytes, eventfd: int) -> bool:
        self.may_go_on.wait(PATIENCE)
        if self.fails:
            raise self.fails
        self.done.append((len(shipped), get_ident()))
        self.written += 1
        return True

    def sync(self) -> None:
        number = self.written
        self.syncs += 1
        self.synced = number

    def go_on(self, place: Place) -> None:
        self.written, self.synced = place.number, 0


class FakeWarm:
    def __init__(self) -> None:
        self.applier = FakeApplier()
        self.standing = b""
        self.is_closed = False

    @property
    def place(self) -> Place | None:
        return Place(self.applier.written, 1, 2, 3) if self.applier.written else None

    def close(self) -> None:
        self.is_closed = True


class Made:
    def __init__(self, ack: ReplicaAck) -> None:
        self.warm: Any = FakeWarm()
        self.others: list[Any] = []
        self.failures: list[Error] = []
        self.synced = Event()
        self.applying = Applying(
            self.warm, self._remake, ack, self.synced.set, self.failures.append
        )

    def _remake(self) -> Any:
        self.others.append(FakeWarm())
        return self.others[-1]

    def settle(self) -> None:
        done = Event()
        self.applying.then(done.set)
        assert done.wait(PATIENCE)
        while self.applying._left:
            pass


@pytest.fixture(params=list(ReplicaAck))
def made(request: pytest.FixtureRequest) -> Iterator[Made]:
    it = Made(request.param)
    yield it
    it.warm.applier.may_go_on.set()
    it.applying.stop()


def test_little_is_done_at_once_and_much_is_not(made: Made) -> None:
    assert made.applying.apply(LITTLE)
    assert made.warm.applier.done == [(len(LITTLE), get_ident())]
    assert not made.applying.apply(MUCH)
    made.settle()
    length, thread = made.warm.applier.done[-1]
    assert length == len(MUCH)
    assert thread != get_ident()


def test_little_behind_much_waits_for_its_turn(made: Made) -> None:
    made.warm.applier.may_go_on.clear()
    assert not made.applying.apply(MUCH)
    assert not made.applying.apply(LITTLE)
    assert not made.applying.is_done
    made.warm.applier.may_go_on.set()
    made.settle()
    assert [length for length, _ in made.warm.applier.done] == [len(MUCH), len(LITTLE)]
    assert made.applying.is_done
    assert made.applying.apply(LITTLE), "nothing is left"


def test_it_answers_for_what_is_written_or_synced(made: Made) -> None:
    made.applying.apply(LITTLE)
    made.applying.apply(LITTLE)
    if made.applying._ack is ReplicaAck.RECEIVED:
        assert made.applying.has == 2
    else:
        assert select.select([made.applying.eventfd], [], [], PATIENCE)[0]
    assert made.synced.wait(PATIENCE)
    made.settle()
    while made.applying.has < 2:
        assert made.synced.wait(PATIENCE)


def test_a_number_of_a_former_live_is_not_answered_for(made: Made) -> None:
    for _ in range(9):
        made.applying.apply(LITTLE)
    made.applying.go_on(Place(5, 2, 3, 4))
    made.settle()
    assert made.applying.has <= 5


def test_what_failed_takes_nothing_more_until_it_is_made_anew(made: Made) -> None:
    made.warm.applier.fails = JournalDamaged("it does not check")
    assert made.applying.apply(LITTLE)
    assert [str(each) for each in made.failures] == ["it does not check"]
    made.warm.applier.fails = None
    made.applying.apply(LITTLE)
    assert made.warm.applier.done == []
    assert not made.applying.is_done
    assert made.applying.at() is None
    made.applying.discard()
    made.settle()
    assert made.applying.is_done
    assert made.warm.is_closed
    assert made.applying.at() is None, "nothing was applied to the new one"
    made.applying.apply(LITTLE)
    assert made.applying.at() == (Place(1, 1, 2, 3), b"")
    assert made.applying.stop() is made.others[0]


def test_a_following_knows_whether_what_its_live_has_said_was_told() -> None:
    """Then a member that loses its live asks at once, and not when all is synced."""
    warm: Any = FakeWarm()
    warm.repeats = warm.own = None
    carrier = Told()
    with NetworkThread() as thread:
        following = Following(
            thread, Path(), "b", b"", ReplicationTerms(), warm, FakeWarm, carrier, lambda _: None
        )  # type: ignore[arg-type]
        assert following.has_told_all

        def comes() -> bool:
            warm.standing = b"another list"
            following._applying.apply(LITTLE)
            return following.has_told_all

        assert not thread.ask(comes)
        assert carrier.has_heard.wait(PATIENCE)
        thread.ask(lambda: None)
        assert carrier.standings == [b"another list"]
        assert following.has_told_all
        following.stop()


class Told(Carrier):
    def __init__(self) -> None:
        self.standings: list[bytes] = []
        self.has_heard = Event()
        self.steps: list[str] = []
        """That followed of a failure."""

    def applied(self, place: Place, standing: bytes) -> None:
        if standing not in self.standings:
            self.standings.append(standing)
        self.has_heard.set()

    def break_off(self, why: str) -> None:
        self.steps.append("all comes anew")

    def failed(self, why: str) -> None:
        self.steps.append("failed")


ANEW = (None, None)
HAD = (Place(5, 1, 2, 3), Place(6, 1, 2, 3))


@pytest.mark.parametrize(
    ("error", "steps", "places"),
    [
        (JournalDamaged("x"), ["all comes anew"], ANEW),
        (MessageGone("x"), ["all comes anew"], ANEW),
        (JournalFailed("x"), ["all comes anew", "failed"], ANEW),
        (DiskFull("x"), ["failed"], HAD),
    ],
)
def test_what_it_has_is_kept_if_only_its_disk_is_full(
    error: Error, steps: list[str], places: tuple[Place | None, Place | None]
) -> None:
    warm: Any = FakeWarm()
    warm.repeats, warm.own = HAD
    carrier = Told()
    with NetworkThread() as thread:
        following = Following(
            thread, Path(), "b", b"", ReplicationTerms(), warm, FakeWarm, carrier, lambda _: None
        )  # type: ignore[arg-type]
        warm.applier.fails = error

        def comes() -> None:
            following._applying.apply(MUCH)
            following._applying.then(lambda: thread.call(carrier.has_heard.set))

        thread.ask(comes)
        assert carrier.has_heard.wait(PATIENCE)
        assert (carrier.steps, following.places) == (steps, places)
        assert following.stop() is None


@pytest.mark.parametrize("ack", list(ReplicaAck))
def test_who_takes_nothing_more_has_all_of_it_on_disk(ack: ReplicaAck) -> None:
    """A live that it joins again takes all that it has for confirmed."""
    made = Made(ack)
    made.applying.apply(LITTLE)
    made.applying.stop()
    applier = made.warm.applier
    assert applier.synced == applier.written == 1


def test_who_cannot_sync_what_it_has_begins_with_what_is_on_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made(ReplicaAck.RECEIVED)
    made.applying.apply(LITTLE)

    def fails() -> None:
        raise JournalDamaged("no space")

    monkeypatch.setattr(made.warm.applier, "sync", fails)
    assert made.applying.stop() is None
    assert made.warm.is_closed
