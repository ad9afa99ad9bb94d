"""A pair with a witness: rows of SEMANTICS 3.3 and 3.6 where somebody can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker import ConnectionClosed
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from tests.netbridge.replicated.conftest import PATIENCE, Made, Node
from tests.netbridge.replicated.test_losing import MANY, filled
from tests.support.witness import PASSWORD, Place


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "witness")
    made.begin()
    yield made
    made.kill()


def guarded(
    node: Made, witness: Place, settings: dict[str, object] | None = None, **more: object
) -> Node:
    return node({
        **(settings or {}),
        "ha.replication.on-partition": None,
        **witness.settings,
        "ha.replication.lease": "3s",
        **{f"ha.replication.{name.replace('_', '-')}": each for name, each in more.items()},
    })  # fmt: skip


def test_live_crashes(node: Made, witness: Place) -> None:
    two = guarded(node, witness).up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    assert two.bodies("b") == MANY
    assert "vote won" in two["b"].events()


def test_live_stops_gracefully(node: Made, witness: Place) -> None:
    two = guarded(node, witness).up()
    filled(two)
    assert two["a"].stop() == 0
    two["b"].becomes("live")
    assert two.bodies("b") == MANY
    assert two["b"].status.epoch == 2


def test_backup_crashes_and_the_live_asks(node: Made, witness: Place) -> None:
    two = guarded(node, witness).up()
    orders = filled(two)
    two["b"].kill()
    two.says("a", "alone")
    orders.publish(b"alone", timeout=PATIENCE)
    assert orders.level == "disk"
    assert "vote won" in two["a"].events()


def test_failback(node: Made, witness: Place) -> None:
    two = guarded(node, witness, check_for_live_server=True).up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    two["a"].start().becomes("live")
    two.says("b", "in sync")
    assert two.bodies("a") == MANY
    assert two["a"].status.epoch == 3


def test_a_member_that_was_live_alone_serves_again(node: Made, witness: Place) -> None:
    two = guarded(node, witness)
    two["a"].start().becomes("live")
    filled(two)
    two["a"].kill()
    two["a"].start().becomes("live")
    assert two.bodies("a") == MANY


def test_a_lost_witness_changes_nothing_while_both_are_there(node: Made, witness: Place) -> None:
    two = guarded(node, witness).up()
    orders = filled(two)
    witness.kill()
    for body in MANY:
        orders.publish(body, timeout=PATIENCE)
    assert orders.confirm(timeout=PATIENCE) == "disk+replicated"
    witness.begin()
    two["a"].kill()
    two["b"].becomes("live")
    assert two.bodies("b") == MANY * 2


def test_a_live_that_stood_still_is_fenced_when_it_wakes(node: Made, witness: Place) -> None:
    quick: dict[str, object] = {"link-defaults.heartbeat-interval": "300ms"}
    two = guarded(node, witness, settings=quick, lease="1s").up()
    orders = filled(two)
    two.stands_still("a")
    two["b"].becomes("live")
    two.connected("b").queue("orders").publish(b"of the new live", timeout=PATIENCE)
    two.goes_on("a")
    two["a"].becomes("passive")
    two.says("a", "in sync")
    assert "fenced" in two["a"].events()
    with pytest.raises(ConnectionClosed, match="has moved"):
        orders.publish(b"too late", timeout=PATIENCE)
    assert two.bodies("b") == [*MANY, b"of the new live"]


def test_members_follow_a_password_of_the_witness_that_is_changed(
    node: Made, witness: Place
) -> None:
    two = guarded(node, witness).up()
    orders = filled(two)
    witness.kill()
    for folder in (witness.folder, two["a"].folder, two["b"].folder):
        file = folder / FILE
        assert f'"{PASSWORD}"' in file.read_text()
        file.write_text(file.read_text().replace(f'"{PASSWORD}"', '"a newer password"'))
    witness.begin()
    for name in "ab":
        answer = reloading.asked(two[name].folder, PATIENCE)
        assert answer is not None
        assert answer["applied"] == ["credentials.votes.password"]
    two["b"].kill()
    two.says("a", "alone")
    orders.publish(b"alone", timeout=PATIENCE)
