"""Who is in a cluster: learned through one, newer over older, duplicates, forgetting, counting."""

from __future__ import annotations

import itertools

import pytest

from shmbroker.netbridge.cluster.said import Announcement, Forgotten, Here, Known, Left, Say
from shmbroker.netbridge.election.threshold import IMPOSSIBLE, Quorum
from tests.netbridge.cluster.talk import Town, node_of


def chain(*names: str) -> Town:
    town = Town()
    for name in names:
        town.add(name)
    for near, far in itertools.pairwise(names):
        town.link(near, far)
    town.meet()
    return town


def test_whoever_reaches_one_learns_all() -> None:
    town = chain("a", "b", "c", "d")
    for name in "abcd":
        assert town.knows(name) == set("abcd") - {name}
        assert town.count(name) == (4, 3)


def test_a_backup_hears_of_a_live_that_was_away_when_it_came() -> None:
    """Nobody connects to a backup, so no other word brings it."""
    town = Town()
    statics = ("tcp://b:1",)
    for name in "abc":
        town.add(name, statics=statics)
    away = town.link("b", "c")
    town.link("a", "b")
    town.cut(away)
    town.add("a2", node="a", is_live=False, group=("a", "a2"), statics=statics)
    town.link("a2", "b")
    assert town.knows("a2") == {"b"}, "who is gone is remembered by those that have seen it"
    town.link("b", "c")
    assert town.knows("a2") == {"b", "c"}


def test_a_backup_that_was_restarted_does_not_count_for_its_live() -> None:
    town = Town()
    for name in "abc":
        town.add(name, group=("b", "b2") if name == "b" else ())
    town.link("a", "b")
    town.link("b", "c")
    town.dies("c")
    town.dies("a")
    town.add("a", epoch=2)
    town.link("a", "b")
    assert town.count("a") == (3, 2), "b remembers c"
    town.add("b2", node="b", is_live=False, group=("b", "b2"))
    town.link("b2", "a")
    assert town.count("a") == (3, 2)


def test_what_was_there_when_another_forgot_it_can_be_forgotten_once_it_is_gone() -> None:
    town = Town()
    for name in "abc":
        town.add(name)
    away = town.link("a", "c")
    town.link("a", "b")
    town.link("b", "c")
    town.cut(away)
    assert town.forget("a", "c") == ""
    assert town.knows("b") == {"a", "c"}
    town.dies("c")
    assert town.forget("b", "c") == ""
    assert town.knows("b") == {"a"}
    assert town.count("b") == (2, 1)


def test_who_forgets_an_older_one_hears_of_the_newer_one() -> None:
    """Seed 20003381: it was counted, and nobody who could forget it knew of it."""
    town = chain("a", "b", "c")
    town.dies("c")
    for link in {number for _, number in town.far}:
        town.cut(link)
    town.add("c", epoch=2)
    town.link("b", "c")
    town.dies("c")
    assert town.forget("a", "c") == ""
    town.link("a", "b")
    assert town.knows("a") == {"b", "c"}
    assert town.count("a") == town.count("b") == (3, 2)
    assert town.forget("a", "c") == ""
    assert town.knows("a") == {"b"}
    assert town.knows("b") == {"a"}
    assert town.count("a") == town.count("b") == (2, 1)


def test_a_node_of_which_only_a_backup_was_met_can_be_forgotten() -> None:
    """Seed 21000638: its backup counts it, and so does whoever that has told."""
    town = chain("a", "b")
    town.add("c2", node="c", is_live=False, group=("c", "c2"))
    town.link("c2", "a")
    assert town.knows("a") == {"b"}
    assert town.count("a") == (3, 2)
    town.dies("c2")
    assert town.count("a") == (3, 2)
    assert town.members["a"].named("c2") == node_of("c")
    for _ in range(2):
        assert town.forget("a", "c") == ""
        assert town.count("a") == town.count("b") == (2, 1)
        town.add("c2", node="c", is_live=False, group=("c", "c2"))
        town.link("c2", "a")
        assert town.count("a") == (3, 2)
        town.dies("c2")


def test_links_are_wanted_to_all_that_are_known_but_itself() -> None:
    town = Town()
    statics = ("tcp://a:1", "tcp://b:1")
    for name in "abc":
        town.add(name, statics=statics)
    assert town.members["a"].wanted == {"tcp://b:1"}
    town.link("b", "c")
    town.link("a", "b")
    assert town.members["a"].wanted == {"tcp://b:1", "tcp://c:1"}
    assert town.members["c"].wanted == {"tcp://a:1", "tcp://b:1"}


def test_direct_connections_only() -> None:
    town = Town()
    town.add("a", statics=("tcp://b:1",), learns=False)
    town.add("b")
    town.add("c")
    town.link("b", "c")
    town.link("a", "b")
    assert town.knows("a") == {"b", "c"}
    assert town.members["a"].wanted == {"tcp://b:1"}


@pytest.mark.parametrize(("epoch", "version"), [(6, 9), (7, 1)])
def test_what_is_not_newer_is_ignored(epoch: int, version: int) -> None:
    town = Town()
    town.add("a")
    b = town.add("b", epoch=7)
    town.link("a", "b")
    assert b.me is not None
    node, uri = node_of("b"), "tcp://old:1"
    old = Announcement(node, bytes(16), epoch, version, "old", uri, True, ("b",), "")
    town.does("a", town.members["a"].heard(9, Known(old), 0.0))
    assert town.members["a"].lives[node_of("b")] == b.me


def test_a_takeover_is_the_same_node_at_another_address() -> None:
    town = Town()
    group = ("b", "b2")
    town.add("a")
    town.add("b", epoch=3, group=group)
    town.add("b2", node="b", epoch=3, is_live=False, group=group)
    for name in ("b", "b2"):
        town.link("a", name)
    a = town.members["a"]
    assert town.count("a") == town.count("b") == (2, 1)
    voters = a.electorate.voters
    assert [each.name for each in a.backups.values()] == ["b2"]
    town.dies("b")
    assert town.states("a", "missing") == ["b at tcp://b:1"]
    assert not a.is_there(node_of("b"))
    town.does("b2", town.members["b2"].becomes(node_of("b"), 4, is_live=True))
    assert a.is_there(node_of("b"))
    assert a.electorate.voters == voters
    assert a.lives[node_of("b")].uri == "tcp://b2:1"
    assert not a.backups
    assert town.count("a") == (2, 1)


def test_a_backup_counts_its_own_node_once_and_the_others() -> None:
    town = chain("a", "b", "c")
    town.add("a2", node="a", is_live=False, group=("a", "a2"))
    town.link("a2", "b")
    assert town.knows("a2") == {"b", "c"}
    assert town.count("a2") == (3, 2)


def test_who_knows_no_node_of_its_own_says_nothing_of_itself() -> None:
    town = chain("a", "b")
    fresh = town.add("c")
    fresh.me = None
    town.link("b", "c")
    assert town.knows("b") == {"a"}
    assert town.knows("c") == {"a", "b"}


# --- a copied store ---------------------------------------------------------------------------


def copied() -> Town:
    """`b` runs twice, under one name and with one node id, at two addresses."""
    town = chain("a", "b")
    town.add("b", key="copy", epoch=9)
    town.link("a", "copy")
    return town


def test_the_second_process_of_a_node_is_not_taken_and_warned_of_once() -> None:
    town = copied()
    town.later(1.9)
    assert not town.states("a", "duplicate id")
    town.later(0.2)
    town.later(10)
    [line] = town.states("a", "duplicate id")
    assert "b at tcp://b:1 and b at tcp://copy:1" in line
    assert town.members["a"].lives[node_of("b")].uri == "tcp://b:1"
    assert town.count("a") == (2, 1)
    assert [each.uri for each in town.members["a"].duplicates] == ["tcp://copy:1"]


def test_each_of_the_two_hears_of_the_other_when_they_meet() -> None:
    town = Town()
    town.add("b")
    town.add("b", key="copy", epoch=9)
    town.link("b", "copy")
    town.later(2.1)
    assert len(town.states("b", "duplicate id")) == len(town.states("copy", "duplicate id")) == 1


@pytest.mark.parametrize("seconds", [0.6, 5.0], ids=["silent later", "paused meanwhile"])
def test_a_restart_is_no_duplicate_though_the_old_link_falls_silent_later(seconds: float) -> None:
    """Who was paused is woken by its own clock before it hears of the link."""
    town = Town()
    for name in "ab":
        town.add(name)
    old = town.link("a", "b")
    town.add("b", key="again", epoch=2)
    town.link("a", "again")
    town.later(seconds)
    town.cut(old)
    town.later(10)
    assert not town.states("a", "duplicate id")
    assert town.members["a"].lives[node_of("b")].uri == "tcp://again:1"


def test_a_backup_that_its_live_did_not_know_of_is_no_duplicate() -> None:
    """It runs at another live, and says whose member it is."""
    town = Town()
    town.add("a")
    town.add("b", epoch=3)
    town.add("colocated", node="b", epoch=3, is_live=False, group=("b", "colocated"))
    for name in ("b", "colocated"):
        town.link("a", name)
    town.does("colocated", town.members["colocated"].becomes(node_of("b"), 4, is_live=True))
    town.later(10)  # the former live is still there
    assert not town.states("a", "duplicate id")
    assert town.members["a"].lives[node_of("b")].uri == "tcp://colocated:1"


def test_the_copy_is_taken_when_the_first_one_is_gone() -> None:
    town = copied()
    town.later(3)
    town.dies("b")
    assert town.members["a"].lives[node_of("b")].uri == "tcp://copy:1"
    assert not town.members["a"].duplicates


def test_a_process_is_parted_from_by_the_last_link_to_it() -> None:
    town = Town()
    town.add("a")
    there = town.add("b").me
    assert there is not None
    first, second = town.link("a", "b"), town.link("a", "b")
    assert [town.members["a"].parted_by(each) for each in (first, second)] == [b"", b""]
    town.cut(first)
    assert town.members["a"].parted_by(second) == there.incarnation


# --- forgetting, and counting -----------------------------------------------------------------


def test_a_live_that_is_gone_still_counts() -> None:
    town = chain("a", "b", "c")
    town.dies("c")
    assert town.count("a") == town.count("b") == (3, 2)
    assert not town.members["a"].can_vote


def test_forgetting_lowers_the_count_everywhere() -> None:
    town = chain("a", "b", "c", "d")
    town.dies("d")
    assert town.forget("a", "d") == ""
    for name in "abc":
        assert town.count(name) == (3, 2)
        assert "d" not in town.knows(name)


def five(*, restarted: str) -> Town:
    """`c`, `d` and `e` are gone, and this one remembers them no more."""
    town = chain(*"abcde")
    for name in "cde":
        town.dies(name)
    town.dies(restarted)
    town.add(restarted, epoch=2)
    town.link("a", "b")
    return town


def test_what_was_forgotten_is_counted_off_once_however_often_it_is_said() -> None:
    town = five(restarted="a")
    assert town.count("a") == town.count("b") == (5, 3)
    for name in "abab":
        town.does(name, town.members[name].forgets(node_of("c")))
        assert town.count("a") == town.count("b") == (4, 3)


@pytest.mark.parametrize("by_all", [False, True])
def test_a_count_that_is_kept_is_lowered_once_for_each_node(by_all: bool) -> None:
    """By command or by hearsay, and also after a restart."""
    town = chain("a", "b")
    kept = Quorum(recalculates=False, seen_max=5)
    town.dies("a")
    a = town.add("a", epoch=2, quorum=kept)
    link = town.link("a", "b")
    for name in "ba" if by_all else "b":
        town.does(name, town.members[name].forgets(node_of("c")))
    town.does("a", a.leaves(Left(node_of("c"), 1, node_of("b"))))
    assert town.count("a") == (4, 3)
    town.cut(link)
    town.dies("a")
    town.add("a", epoch=3, quorum=a.quorum.restarted())
    town.link("a", "b")
    assert town.count("a") == (4, 3)
    town.add("c", epoch=2)
    town.link("c", "a")
    assert town.count("a") == (5, 3), "it is back"


def test_a_number_counts_that_was_told_before_it_was_heard_who_was_forgotten() -> None:
    """From one that has heard it over another link, and says nothing again."""
    town = five(restarted="a")
    a, b = town.members["a"], town.members["b"]
    town.cut(next(number for name, number in town.far if name == "a"))
    town.does("b", b.forgets(node_of("c")))
    [said] = [each.what for each in b.up(9, town.now)
              if isinstance(each, Say) and isinstance(each.what, Here)]  # fmt: skip
    town.does("a", a.up(9, town.now))
    town.does("a", a.heard(9, said, town.now))
    town.does("a", a.heard(9, Forgotten(node_of("c"), 1), town.now))
    assert town.count("a") == (4, 3)


def test_one_that_remembers_it_forgets_what_another_one_has_never_met() -> None:
    town = five(restarted="a")
    assert town.knows("b") == set("acde")
    town.does("a", town.members["a"].forgets(node_of("c")))
    assert town.knows("a") == {"b"}
    assert town.knows("b") == set("ade")
    assert town.count("a") == town.count("b") == (4, 3)
    assert town.members["a"].forgotten == town.members["b"].forgotten


def test_what_was_forgotten_unknown_long_ago_is_not_forgotten_again_when_it_is_said_anew() -> None:
    """It was back since."""
    town = Town()
    town.add("a")
    town.does("a", town.members["a"].forgets(node_of("c")))
    town.add("b")
    town.add("c", epoch=2)
    town.link("b", "c")
    town.dies("c")
    town.link("a", "b")
    assert town.knows("b") == {"a", "c"}
    assert town.count("a") == town.count("b") == (3, 2)


def test_who_has_missed_it_does_not_bring_it_back() -> None:
    town = chain("a", "b", "c")
    town.dies("c")
    [link] = [number for (name, number) in town.far if name == "a"]
    town.cut(link)
    assert town.forget("b", "c") == ""
    assert town.count("a") == (3, 2)
    town.link("a", "b")
    assert town.count("a") == town.count("b") == (2, 1)
    assert town.knows("a") == {"b"}


def test_a_number_of_one_that_has_missed_it_does_not_count() -> None:
    town = chain("a", "b", "c")
    town.dies("c")
    for link in {number for _, number in town.far}:
        town.cut(link)
    assert town.forget("a", "c") == ""
    a, b = town.members["a"], town.members["b"]
    assert b.me is not None
    late = Here(b.me, 3, 0)  # it dies before it hears of it
    town.does("a", a.up(9, town.now))
    town.does("a", a.heard(9, late, town.now))
    town.does("a", a.down(9, town.now))
    assert town.count("a") == (2, 1)


def test_hearsay_does_not_bring_back_what_was_forgotten() -> None:
    town = chain("a", "b", "c")
    gone = town.members["c"].me
    assert gone is not None
    town.dies("c")
    town.forget("a", "c")
    a = town.members["a"]
    town.does("a", a.heard(9, Known(gone), town.now))
    assert town.knows("a") == {"b"}
    assert town.count("a") == (2, 1)


def test_what_was_forgotten_counts_again_when_it_comes() -> None:
    town = chain("a", "b", "c")
    town.dies("c")
    town.forget("a", "c")
    assert town.count("b") == (2, 1)
    town.add("c", epoch=2)
    town.link("b", "c")
    assert town.count("a") == town.count("b") == town.count("c") == (3, 2)


def test_one_that_was_only_cut_off_counts_again() -> None:
    town = chain("a", "b", "c")
    for link in [number for (name, number) in town.far if name == "c"]:
        town.cut(link)
    assert town.forget("a", "c") == ""
    assert town.count("a") == (2, 1)
    town.link("b", "c")
    assert town.count("a") == town.count("b") == (3, 2)


def test_a_name_is_not_the_beginning_of_an_id() -> None:
    """Of one that was forgotten already, said again: another one must not be."""
    town = chain("a", "b")
    town.dies("b")
    other, like_it = bytes.fromhex("be" + "00" * 15), bytes.fromhex("be" + "00" * 14 + "01")
    a = town.members["a"]
    assert a.named("b", [other]) == node_of("b")
    town.forget("a", "b")
    assert "there is no node 'b' in this cluster" in str(a.named("b", [other]))
    assert a.named("BE000000", [other]) == a.named(other.hex(), [other, like_it]) == other
    assert a.named("be000000", [other, like_it]) == (
        f"'be000000' may be {other.hex()} or {like_it.hex()}"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [("a", "own node"), ("b", "b is there: stop it first"), ("x", "there is no node")],
)
def test_what_is_not_forgotten(name: str, why: str) -> None:
    town = chain("a", "b")
    assert why in town.forget("a", name)
    assert town.count("a") == (2, 1)


def test_a_restart_of_one_lowers_nothing_and_of_all_does() -> None:
    town = chain("a", "b", "c")
    town.dies("c")
    for name, epoch in (("a", 2), ("b", 2)):
        other = "b" if name == "a" else "a"
        town.dies(name)
        town.add(name, epoch=epoch)
        town.link(name, other)
    assert town.count("a") == town.count("b") == (2, 1)


def test_while_one_was_not_restarted_nothing_falls() -> None:
    town = chain("a", "b", "c")
    town.dies("c")
    town.dies("a")
    town.add("a", epoch=2)
    assert town.count("a") == (1, IMPOSSIBLE)
    town.link("a", "b")
    assert town.count("a") == (3, 2)


def test_a_size_that_is_stated_counts_at_least() -> None:
    town = Town()
    town.add("a", quorum=Quorum(size=5))
    town.add("b")
    town.link("a", "b")
    assert town.count("a") == (5, 3)


# --- in time ----------------------------------------------------------------------------------


def test_an_announcement_is_repeated_on_joining() -> None:
    town = Town()
    town.add("a")
    town.add("b")
    town.link("a", "b")
    before = town.said
    town.later(1)
    assert town.said == before + 2
    town.later(1)
    town.later(60)
    assert town.said == before + 4


def test_a_member_that_is_back_is_said_to_be() -> None:
    town = chain("a", "b")
    town.dies("b")
    town.add("b", epoch=2)
    town.link("a", "b")
    assert [state for who, state, _ in town.lines if who == "a"] == [
        "joined", "missing", "moved", "back",
    ]  # fmt: skip
