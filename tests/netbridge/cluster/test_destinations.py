"""Who gets messages that were on their way to a node that was forgotten."""

from __future__ import annotations

from shmbroker.netbridge.cluster.advert import Queue
from shmbroker.netbridge.cluster.balancing import HERE, destinations
from shmbroker.netbridge.cluster.redistribution import Here

EAST, WEST = b"east", b"west"
UP = frozenset({EAST, WEST})


def there(**of: Queue) -> dict[bytes, dict[str, Queue]]:
    return {node.encode(): {each.name: each} for node, each in of.items()}


def queue(
    *, is_consumed: bool = True, balanced: bool = True, selectors: tuple[str, ...] = ()
) -> Queue:
    return Queue("q", True, is_consumed, balanced, selectors)


def here(*, is_consumed: bool, balanced: bool = True) -> Here:
    return Here("q", is_consumed, None, 1, balanced)


def test_those_who_take_have_turns() -> None:
    elsewhere = there(east=queue(), west=queue())
    assert destinations("on-demand", [], elsewhere, UP) == {"q": (EAST, WEST)}
    assert destinations("on-demand", [here(is_consumed=True)], elsewhere, UP) == {
        "q": (HERE, EAST, WEST)
    }
    assert destinations("on-demand", [here(is_consumed=False)], elsewhere, frozenset({WEST})) == {
        "q": (WEST,)
    }


def test_if_nobody_takes_it_stays_here_or_goes_to_the_first() -> None:
    elsewhere = there(east=queue(is_consumed=False), west=queue(is_consumed=False))
    assert destinations("on-demand", [here(is_consumed=False)], elsewhere, UP) == {"q": (HERE,)}
    assert destinations("on-demand", [], elsewhere, UP) == {"q": (EAST,)}


def test_who_takes_some_of_it_has_no_turn() -> None:
    elsewhere = there(east=queue(selectors=("a = 1",)), west=queue())
    assert destinations("on-demand", [], elsewhere, UP) == {"q": (WEST,)}


def test_what_is_not_balanced_stays_here() -> None:
    elsewhere = there(east=queue(balanced=False))
    own = here(is_consumed=False, balanced=False)
    assert destinations("strict", [own], elsewhere, UP) == {"q": (HERE,)}
    assert destinations("strict", [], elsewhere, UP) == {"q": (EAST,)}
    for mode in ("off", "off-with-redistribution"):
        assert destinations(mode, [here(is_consumed=False)], there(east=queue()), UP) == {
            "q": (HERE,)
        }


def test_strict_asks_nobody_whether_he_takes() -> None:
    elsewhere = there(east=queue(is_consumed=False), west=queue(is_consumed=False))
    assert destinations("strict", [here(is_consumed=False)], elsewhere, frozenset()) == {
        "q": (HERE, EAST, WEST)
    }
