"""Whom a live asks for a backup, and to whom one says yes: the two machines, event by event."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from shmbroker.netbridge.cluster.asking import (
    ANSWER_SECONDS,
    SETTLE_SECONDS,
    Asking,
    Count,
    Release,
    Request,
)
from shmbroker.netbridge.cluster.hosting import Begin, Hosting, Terms
from shmbroker.netbridge.cluster.machine import NEVER, Line
from shmbroker.netbridge.cluster.said import Counted, Granted, Requests
from shmbroker.netbridge.election.question import Node

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
US = b"u" * 16


def wanted(count: int = 0, *, group: str = "", vhost: str = "orders") -> Requests:
    return Requests(7, count, "shared-store", group, "us", vhost, "", "/store", "", "", "")


def there(count: int = 0, *, is_yours: bool = False, why: str = "") -> Counted:
    return Counted(1, count, is_yours, "colocated_backup_1" if is_yours else "", why)


GRANTED = Granted(2, "colocated_backup_3", "", is_old=False)
FULL = Granted(2, "", "it is full", is_old=False)
OLD = Granted(2, "", "it runs 2 by now", is_old=True)


def words(actions: Iterable[object]) -> list[object]:
    return [each for each in actions if not isinstance(each, Line)]


def asking(*nodes: Node, retries: int | None = None) -> Asking:
    """Of a live that has just counted these."""
    made = Asking(retries, 5.0)
    assert words(made.becomes(0.0, is_live=True)) == []
    assert words(made.reaches(nodes, 0.0)) == []
    assert made.due == SETTLE_SECONDS
    assert words(made.tick(SETTLE_SECONDS)) == [Count(each) for each in sorted(nodes)]
    return made


def answers(made: Asking, now: float, **counts: Counted) -> list[object]:
    nodes = {"a": A, "b": B, "c": C}
    return [
        action for name, each in counts.items()
        for action in words(made.counted(nodes[name], each, now))
    ]  # fmt: skip


def test_who_runs_fewest_is_asked() -> None:
    made = asking(A, B, C)
    assert answers(made, 1.0, a=there(2), b=there(1)) == []
    assert answers(made, 1.0, c=there(1)) == [Request(B, 1)]
    assert words(made.answered(B, GRANTED, 2.0)) == []
    assert (made.host, made.backup, made.due) == (B, "colocated_backup_3", NEVER)


def test_who_cannot_is_not_asked_and_nobody_is_asked_before_the_pause_is_over() -> None:
    made = asking(A, B)
    assert answers(made, 1.0, a=there(why="it is full"), b=there(why="it is full")) == []
    assert (made.why, made.due) == ("it is full", 6.0)
    assert words(made.tick(5.9)) == []
    assert words(made.tick(6.0)) == [Count(A), Count(B)]


def test_the_next_one_is_asked_after_a_refusal() -> None:
    made = asking(A, B)
    assert answers(made, 1.0, a=there(0), b=there(3)) == [Request(A, 0)]
    assert words(made.answered(A, FULL, 2.0)) == []
    assert (made.why, made.due) == ("it is full", 7.0)
    made_anew = words(made.tick(7.0))
    assert made_anew == [Count(A), Count(B)]
    assert answers(made, 7.0, a=there(0), b=there(3)) == [Request(B, 3)]
    assert words(made.answered(B, FULL, 8.0)) == []
    words(made.tick(13.0))
    assert answers(made, 13.0, a=there(0), b=there(3)) == [Request(A, 0)]


def test_an_old_count_is_asked_for_again_at_once() -> None:
    made = asking(A)
    assert answers(made, 1.0, a=there(1)) == [Request(A, 1)]
    assert words(made.answered(A, OLD, 2.0)) == [Count(A)]
    assert answers(made, 2.0, a=there(2)) == [Request(A, 2)]


def test_retries_are_used_up_until_somebody_comes() -> None:
    made = asking(A, retries=1)
    answers(made, 1.0, a=there())
    words(made.answered(A, FULL, 1.0))
    words(made.tick(6.0))
    answers(made, 6.0, a=there())
    words(made.answered(A, FULL, 6.0))
    assert made.due == NEVER
    assert "used up" in made.why
    assert words(made.reaches([A, B], 50.0)) == []
    assert words(made.tick(51.0)) == [Count(A), Count(B)]


def test_who_runs_ours_already_is_taken_at_its_word() -> None:
    made = asking(A, B)
    assert answers(made, 1.0, a=there(1), b=there(5, is_yours=True)) == []
    assert (made.host, made.backup) == (B, "colocated_backup_1")


def test_who_does_not_answer_is_not_waited_for_longer_than_the_pause() -> None:
    made = asking(A, B)
    assert answers(made, 1.0, a=there(1)) == []
    assert made.due == SETTLE_SECONDS + 5.0
    assert words(made.tick(made.due)) == [Request(A, 1)]


def test_a_request_is_not_waited_for_without_end() -> None:
    made = asking(A, B)
    assert answers(made, 1.0, a=there(0), b=there(1)) == [Request(A, 0)]
    assert words(made.tick(1.0 + ANSWER_SECONDS)) == []
    assert made.why == "it has not answered"
    assert words(made.tick(made.due)) == [Count(A), Count(B)]
    assert answers(made, 37.0, a=there(0), b=there(1)) == [Request(B, 1)]
    assert words(made.answered(B, GRANTED, 38.0)) == []
    assert made.host == B
    assert words(made.answered(A, GRANTED, 39.0)) == [Release(A)]


def test_a_link_that_is_lost_is_not_waited_for() -> None:
    made = asking(A, B)
    assert answers(made, 1.0, a=there(1)) == []
    assert words(made.reaches([A], 2.0)) == [Request(A, 1)]
    assert words(made.reaches([], 3.0)) == []
    assert made.due == 8.0


def test_another_one_is_asked_when_its_host_is_gone_and_the_second_backup_is_released() -> None:
    made = asking(A, B)
    answers(made, 1.0, a=there(), b=there(1))
    words(made.answered(A, GRANTED, 1.0))
    assert words(made.reaches([B], 2.0)) == []
    assert (made.host, made.due) == (None, 7.0)
    assert words(made.tick(7.0)) == [Count(B)]
    assert answers(made, 7.0, b=there(1)) == [Request(B, 1)]
    words(made.answered(B, GRANTED, 8.0))
    assert words(made.reaches([A, B], 9.0)) == [Count(A)]
    assert answers(made, 9.0, a=there(1, is_yours=True)) == [Release(A)]
    assert made.host == B


def test_a_host_that_comes_back_in_time_is_the_one_that_it_was() -> None:
    made = asking(A, B)
    answers(made, 1.0, a=there(), b=there(1))
    words(made.answered(A, GRANTED, 1.0))
    words(made.reaches([B], 2.0))
    words(made.reaches([A, B], 2.5))
    assert words(made.tick(3.5)) == [Count(A), Count(B)]
    assert answers(made, 3.5, a=there(1, is_yours=True)) == []
    assert made.host == A


def test_a_host_that_another_broker_has_replaced_runs_it_no_more() -> None:
    """Its backup has taken over before anybody saw it missing."""
    made = asking(A, B)
    answers(made, 1.0, a=there(), b=there(1))
    words(made.answered(A, GRANTED, 1.0))
    assert words(made.reaches([A, B], 2.0, {A})) == []
    assert (made.host, made.why) == (None, "who hosts it is not reached")
    assert words(made.tick(2.0 + SETTLE_SECONDS)) == [Count(A), Count(B)]


def test_who_was_asked_and_replaced_is_not_waited_for() -> None:
    made = asking(A)
    assert answers(made, 1.0, a=there()) == [Request(A, 0)]
    assert words(made.reaches([A], 2.0, {A})) == []
    assert words(made.tick(2.0 + SETTLE_SECONDS)) == [Count(A)]


def test_a_grant_that_comes_when_another_one_runs_it_is_released() -> None:
    made = asking(A)
    assert answers(made, 1.0, a=there()) == [Request(A, 0)]
    assert words(made.reaches([A, B], 2.0)) == [Count(B)]
    assert answers(made, 2.0, b=there(1, is_yours=True)) == []
    assert words(made.answered(A, GRANTED, 3.0)) == [Release(A)]
    assert made.host == B


def test_a_backup_that_ends_is_asked_for_anew() -> None:
    made = asking(A)
    answers(made, 1.0, a=there())
    words(made.answered(A, GRANTED, 1.0))
    assert words(made.ended(A, "exit code 1", 2.0)) == []
    assert (made.host, made.why, made.due) == (None, "exit code 1", 7.0)
    assert words(made.tick(7.0)) == [Count(A)]


def test_who_is_live_no_more_asks_nobody() -> None:
    made = asking(A)
    assert words(made.becomes(1.0, is_live=False)) == []
    assert answers(made, 1.0, a=there()) == []
    assert made.due == NEVER


# --- who runs them ----------------------------------------------------------------------------


def hosting(most: int = 2, **numbers: int) -> Hosting:
    known = {name.encode() * 16: each for name, each in numbers.items()}
    return Hosting(Terms(most, "shared-store", "", "host"), known)


def test_a_request_is_granted_with_the_next_number() -> None:
    made = hosting()
    assert made.requested(A, wanted()) == Begin(A, 1, wanted())
    assert made.requested(B, wanted(1, vhost="other")) == Begin(B, 2, wanted(1, vhost="other"))


def test_a_node_keeps_its_number() -> None:
    made = hosting(a=3)
    found = made.requested(B, wanted())
    assert isinstance(found, Begin)
    assert found.number == 4
    made.ended(B)
    found = made.requested(A, wanted())
    assert isinstance(found, Begin)
    assert found.number == 3


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (wanted(group="blue"), "group-name is '', and not 'blue'"),
        (wanted(vhost="host"), "vhost 'host' is there already"),
        (Requests(7, 0, "replication", "", "us", "o", "", "", "", "", "u"), "ha.policy"),
    ],
)
def test_what_is_refused(what: Requests, why: str) -> None:
    found = hosting().requested(A, what)
    assert isinstance(found, Granted)
    assert why in found.why
    assert not found.is_old


def test_full_is_full() -> None:
    made = hosting(1)
    made.requested(A, wanted())
    assert made.counted(B, 1).why == "it runs 1 backups of at most 1"
    assert made.counted(A, 1).is_yours
    found = made.requested(B, wanted(1, vhost="other"))
    assert isinstance(found, Granted)
    assert "at most 1" in found.why
    made.ended(A)
    assert made.counted(B, 1).why == ""
    assert "at most 0" in hosting(0).counted(A, 1).why


def test_an_old_count_is_refused() -> None:
    made = hosting(5)
    made.requested(A, wanted())
    found = made.requested(B, wanted(0, vhost="other"))
    assert isinstance(found, Granted)
    assert found.is_old


def test_one_that_runs_is_granted_again() -> None:
    made = hosting()
    made.requested(A, wanted())
    found = made.requested(A, wanted())
    assert isinstance(found, Granted)
    assert found.why == "it is being started"
    made.begun(A)
    assert made.requested(A, wanted(5)) == Granted(7, "colocated_backup_1", "", is_old=False)


def test_whoever_is_stopped_grants_none() -> None:
    made = hosting()
    made.is_leaving = True
    found = made.requested(A, wanted())
    assert isinstance(found, Granted)
    assert "stopped" in found.why


# --- both, at random --------------------------------------------------------------------------


class Town:
    """One that asks, and hosts that come and go; words wait until they are carried."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.asks = Asking(None, 5.0)
        self.hosts = {node: hosting(1) for node in (A, B, C)}
        self.up: set[Node] = set()
        self.waiting: list[object] = []
        self.does(self.asks.becomes(0.0, is_live=True))

    def does(self, actions: Iterable[object]) -> None:
        self.waiting += words(actions)

    def links(self, *nodes: Node) -> None:
        self.up = set(nodes)
        self.does(self.asks.reaches(nodes, self.now))

    def carries(self) -> None:
        """What is said over a link that was lost meanwhile is lost."""
        what = self.waiting.pop(0)
        assert isinstance(what, Count | Request | Release)
        if what.node not in self.up:
            return
        host = self.hosts[what.node]
        if isinstance(what, Count):
            self.does(self.asks.counted(what.node, host.counted(US, 1), self.now))
        elif isinstance(what, Release):
            host.ended(US)
        else:
            found = host.requested(US, wanted(what.count))
            if isinstance(found, Begin):
                host.begun(US)
                found = Granted(1, "colocated_backup_1", "", is_old=False)
            if self.random.random() < 0.8:
                self.does(self.asks.answered(what.node, found, self.now))
            else:
                self.links(*(self.up - {what.node}))

    def steps(self) -> None:
        kind = self.random.choice(["link"] * 2 + ["carry"] * 6 + ["time"] * 2 + ["die", "fill"])
        node = self.random.choice([A, B, C])
        if kind == "link":
            self.links(*(self.up ^ {node}))
        elif kind == "carry" and self.waiting:
            self.carries()
        elif kind == "time":
            self.later(self.random.uniform(0.0, 4.0))
        elif kind == "die":
            self.hosts[node].ended(US)
            if node in self.up and self.random.random() < 0.7:
                self.does(self.asks.ended(node, "exit code 1", self.now))
            else:  # who has run it says nothing of it when it is back
                self.links(*(self.up - {node}))
        elif kind == "fill":
            host, other = self.hosts[node], b"o" * 16
            if other in host.hosted:
                host.ended(other)
            else:
                host.requested(other, wanted(len(host.hosted), vhost="other"))

    def later(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.asks.due:
            self.does(self.asks.tick(self.now))

    def settles(self) -> None:
        self.links(A, B, C)
        for host in self.hosts.values():
            host.ended(b"o" * 16)
        for _ in range(40):
            while self.waiting:
                self.carries()
                self.links(A, B, C)
            self.later(1.0)


@pytest.mark.parametrize("seed", range(200))
def test_when_all_is_well_there_is_one_backup(seed: int) -> None:
    town = Town(seed)
    for _ in range(120):
        town.steps()
    town.settles()
    running = [node for node, host in town.hosts.items() if US in host.hosted]
    assert [town.asks.host] == running, seed
