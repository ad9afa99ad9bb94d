"""Chains: lives that have no link know each other's queues, and by whom messages for them go."""

from __future__ import annotations

from random import Random

import pytest

from shmbroker.netbridge.cluster.advert import Advert, Queue
from shmbroker.netbridge.cluster.paths import Path, paths
from shmbroker.netbridge.cluster.said import Told
from tests.netbridge.cluster.talk import Town, node_of

ORDERS, BILLS = Queue("orders", True, False), Queue("bills", False, True)
SEEDS = 60
STEPS = 60
NAMES = "abcdef"


def chain(names: str = "abcd", hops: int = 3) -> Town:
    """Each names the next one."""
    town = Town()
    for name, following in zip(names, names[1:] + "!", strict=True):
        town.add(name, statics=(f"tcp://{following}:1",), learns=False, hops=hops)
        town.shows(name, Queue(f"of {name}", True, False))
    town.meet()
    return town


def first_hop(town: Town, near: str, far: str) -> str | None:
    found = town.members[near].next_hop(node_of(far))
    return None if found is None else found.decode().rstrip(".")


def test_the_shortest_path_counts_and_of_two_the_smaller_node() -> None:
    graph = {b"b": [b"d"], b"c": [b"d"], b"d": [b"e", b"b", b"c"]}
    assert paths([b"c", b"b"], graph) == {
        b"b": Path(b"b", 1), b"c": Path(b"c", 1), b"d": Path(b"b", 2), b"e": Path(b"b", 3),
    }  # fmt: skip


def test_all_know_the_queues_of_all_and_the_next_hop() -> None:
    town = chain()
    assert town.copied("a", "d") == {Queue("of d", True, False)}
    assert [first_hop(town, "a", each) for each in "bcd"] == ["b", "b", "b"]
    assert [first_hop(town, "c", each) for each in "abd"] == ["b", "b", "d"]
    assert {path.hops for path in town.members["a"].paths.values()} == {1, 2, 3}


def test_what_changes_comes_along_the_chain() -> None:
    town = chain()
    town.shows("d", ORDERS)
    assert town.copied("a", "d") == {ORDERS}
    town.shows("d", ORDERS, BILLS)
    assert town.copied("a", "d") == {ORDERS, BILLS}
    last = [what for who, what in town.words if who == "b" and isinstance(what, Told)][-1]
    assert (last.of, last.is_anew, last.queues) == (node_of("d"), False, (BILLS,))


def test_what_is_further_than_max_hops_is_known_and_nothing_goes_there() -> None:
    town = chain(hops=2)
    assert town.knows("a") == {"b", "c", "d"}
    assert first_hop(town, "a", "c") == "b"
    assert first_hop(town, "a", "d") is None
    assert town.copied("a", "d") == set()
    assert town.members["a"].paths[node_of("d")].hops == 3


def test_one_hop_is_no_way_to_others() -> None:
    town = chain("abc", hops=1)
    assert town.knows("a") == {"b", "c"}
    assert first_hop(town, "a", "c") is None
    assert town.copied("a", "c") == set()


@pytest.mark.parametrize(("learns", "hops"), [(True, 2), (False, 0)])
def test_who_connects_to_all_or_sends_nothing_is_in_no_chain(learns: bool, hops: int) -> None:
    town = Town()
    for name, following in ("ab", "bc", "c!"):
        town.add(name, statics=(f"tcp://{following}:1",), learns=learns, hops=hops)
        town.shows(name, ORDERS)
    town.meet()
    assert not town.members["a"].paths
    assert town.members["a"].me is not None
    assert town.members["a"].me.neighbours == ()


def test_a_hop_that_is_down_ends_the_way_and_it_comes_back() -> None:
    town = chain()
    town.dies("b")
    assert first_hop(town, "a", "c") is None
    assert town.copied("a", "c") == {Queue("of c", True, False)}, "what it told last"
    town.shows("d", BILLS)
    town.add("b", epoch=2, statics=("tcp://c:1",), learns=False, hops=3)
    town.shows("b", ORDERS)
    town.meet()
    assert first_hop(town, "a", "d") == "b"
    assert town.copied("a", "d") == {BILLS}


def test_a_shorter_way_is_taken_and_whoever_is_met_is_asked_itself() -> None:
    town = chain()
    town.link("a", "d")
    assert first_hop(town, "a", "d") == "d"
    assert first_hop(town, "a", "c") == "b"
    town.shows("d", ORDERS)
    assert town.copied("a", "d") == {ORDERS}


def test_who_is_reached_by_others_is_not_forgotten() -> None:
    town = chain()
    assert "stop it first" in town.forget("a", "d")


class Schedule:
    """Any graph: members start, die, are linked and cut off, and show other queues."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.town = Town()
        self.epochs = dict.fromkeys(NAMES, 0)

    def run(self) -> Town:
        for name in NAMES:
            self.starts(name)
        for _ in range(STEPS):
            self.steps()
            self.town.said = 0
        for name, member in self.town.members.items():
            self.town.shows(name, *member.adverts.board.adverts)
        self.town.later(10)
        return self.town

    def steps(self) -> None:
        town, random = self.town, self.random
        there = sorted(town.members)
        gone = sorted(set(NAMES) - set(there))
        kind = random.choice(("start", "die", "cut", "link", "link", "link", "show", "show"))
        if kind == "start" and gone:
            self.starts(random.choice(gone))
        elif kind == "die" and len(there) > 2:
            town.dies(random.choice(there))
        elif kind == "cut" and town.far:
            town.cut(random.choice(sorted({number for _, number in town.far})))
        elif kind == "link":
            town.link(*random.sample(there, 2))
        elif kind == "show":
            queues = [Queue(each, True, random.random() < 0.5) for each in random.sample("xyz", 2)]
            town.shows(random.choice(there), *queues)

    def starts(self, name: str) -> None:
        self.epochs[name] += 1
        self.town.add(name, epoch=self.epochs[name], learns=False, hops=len(NAMES))
        self.town.shows(name)


def boards(town: Town) -> dict[str, set[Advert]]:
    return {name: set(each.adverts.board.adverts) for name, each in town.members.items()}


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_whatever_the_graph_those_that_can_be_reached_are(first: int) -> None:
    for seed in range(first, first + 20):
        town = Schedule(seed).run()
        linked = {node_of(name): set[bytes]() for name in town.members}
        for (near, _), (far, _) in town.far.items():
            linked[node_of(near)].add(node_of(far))
        for name, member in town.members.items():
            reached = paths(linked[node_of(name)], linked)
            reached.pop(node_of(name), None)
            for other, board in boards(town).items():
                if (path := reached.get(node_of(other))) is not None:
                    assert member.paths[node_of(other)].hops == path.hops, (seed, name, other)
                    assert town.copied(name, other) == board, (seed, name, other)
            assert len(member.paths) == len(reached), (seed, name)
