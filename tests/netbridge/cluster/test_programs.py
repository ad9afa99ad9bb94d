"""What programs may be told of a cluster: of whom they can reach, and of whom they wish."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.cluster.programs import others
from shmbroker.netbridge.plan.telling import Telling, Untold
from tests.netbridge.cluster.talk import Town, node_of


def test_lives_that_programs_reach_with_their_backups() -> None:
    town = Town()
    town.add("a")
    town.add("b", programs="tcp://b:5", group=("b", "b2"))
    town.add("b2", node="b", is_live=False, programs="tcp://b2:5", group=("b", "b2"))
    town.add("c")
    link = town.link("a", "b")
    town.link("a", "b2")
    town.link("a", "c")
    [found] = others(town.members["a"])
    assert (found.node.id, found.node.name, found.node.live) == (node_of("b"), "b", "tcp://b:5")
    assert found.node.backups == ("tcp://b2:5",)
    assert found.is_there
    town.cut(link)
    [found] = others(town.members["a"])
    assert not found.is_there


@pytest.mark.parametrize(
    ("telling", "is_there", "is_told"),
    [
        (Telling(False, False, ()), True, False),
        (Telling(True, False, ()), True, True),
        (Telling(True, False, ()), False, True),
        (Telling(True, True, ()), False, False),
        (Telling(True, True, ()), True, True),
        (Telling(True, False, ("rack1.*",)), True, True),
        (Telling(True, False, ("rack2.*", "rack1")), True, False),
        (Telling(False, False, ("rack1.*",)), True, False),
    ],
)
def test_an_acceptor_says_who_is_told_of_whom(
    telling: Telling, is_there: bool, is_told: bool
) -> None:
    assert telling.includes("rack1.east", is_there=is_there) is is_told


def test_programs_move_only_if_they_are_told() -> None:
    given = {
        "update-cluster-clients": True,
        "update-cluster-clients-on-remove": False,
        "update-cluster-filter": ["rack1.*"],
        "rebalance-cluster-clients": False,
    }
    assert Telling.of(given) == Telling(True, False, ("rack1.*",))
    rebalances = given | {"rebalance-cluster-clients": True}
    assert Telling.of(rebalances) == Telling(True, False, ("rack1.*",), rebalances=True)
    with pytest.raises(Untold, match="set update-cluster-clients = true as well"):
        Telling.of(rebalances | {"update-cluster-clients": False})
