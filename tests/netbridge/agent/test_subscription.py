"""What an agent wants, told by differences in pages."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.agent.codec import decode, encode
from shmbroker.netbridge.agent.said import Wanted, Wants
from shmbroker.netbridge.agent.subscription import PAGE, WANTED_MAX, Asked, Asking
from shmbroker.netbridge.wire.malformed import Malformed


def wanted(*numbers: int) -> frozenset[Wanted]:
    return frozenset(Wanted(f"key.{each}", b"\x81\xa1a\x01", each % 2 == 0) for each in numbers)


def heard(asked: Asked, said: list[Wants]) -> list[bool]:
    return [asked.heard(decode(encode(each))) for each in said]  # type: ignore[arg-type]


def test_the_first_says_the_hops_even_if_nothing_is_wanted() -> None:
    asking, asked = Asking(8), Asked()
    assert heard(asked, asking.wants(frozenset())) == [True]
    assert (asked.hops, asked.wanted) == (8, frozenset())
    assert asking.wants(frozenset()) == [], "nothing has changed"


def test_only_differences_are_told_and_count_when_they_are_whole() -> None:
    asking, asked = Asking(1), Asked()
    many = wanted(*range(2 * PAGE + 1))
    first, *others = asking.wants(many)
    assert heard(asked, [first]) == [False]
    assert asked.wanted == frozenset(), "a page is not all"
    assert heard(asked, others) == [False, True]
    assert asked.wanted == many
    less = many - wanted(0, 1) | wanted(1000)
    said = asking.wants(less)
    assert sum(len(each.bindings) + len(each.gone) for each in said) == 3
    assert heard(asked, said)[-1]
    assert asked.wanted == less


def test_more_than_an_exchange_may_have_is_malformed() -> None:
    asked = Asked()
    said = Asking(1).wants(wanted(*range(WANTED_MAX + 1)))
    with pytest.raises(Malformed, match="bindings are wanted"):
        heard(asked, said)


def test_a_page_of_the_longest_bindings_has_room() -> None:
    longest = frozenset(Wanted(f"{each:04}" + "k" * 440, b"", True) for each in range(PAGE))
    [said] = Asking(15).wants(longest)
    assert decode(encode(said)) == said
    asked = Asked()
    assert asked.heard(said)
