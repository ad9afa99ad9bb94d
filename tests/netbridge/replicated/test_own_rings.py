"""Vhosts that have the name of a member's, and were not made by it."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.broker.journaler import begin_restoring
from shmbroker.ipc.instance.config.config import FILE as CONFIG
from shmbroker.ipc.instance.rings import ForeignRings
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.replicated.own_rings import FILE, OwnRings
from tests.conftest import vhost_for_a_while
from tests.netbridge.replicated.conftest import PATIENCE, Made


def test_what_this_member_has_made_is_left_to_whoever_makes_new_ones(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    broker.declare_queue("orders")
    with OwnRings(tmp_path, vhost) as rings:
        rings.made()
    with OwnRings(tmp_path, vhost) as again:
        again.make_way()
    assert vhosts.exists(vhost)


def test_what_others_have_made_stays(vhost: str, tmp_path: Path) -> None:
    with OwnRings(tmp_path, vhost) as rings:
        with shmbroker.connect(f"shm://{vhost}") as program:
            with pytest.raises(ForeignRings, match="has not made it"):  # somebody is there
                rings.make_way()
            program.declare_queue("orders")
        with pytest.raises(ForeignRings, match=f"shmbroker vhost delete {vhost}"):
            rings.make_way()
    assert vhosts.exists(vhost)


def test_what_nobody_needs_is_removed(vhost: str, tmp_path: Path) -> None:
    with OwnRings(tmp_path, vhost) as rings:
        rings.make_way()
    assert not vhosts.exists(vhost)


def test_half_restored_ones_stay_as_long_as_somebody_restores_them(tmp_path: Path) -> None:
    with vhost_for_a_while() as vhost, OwnRings(tmp_path, vhost) as rings:
        with begin_restoring(vhost, name="replica", arena_bytes=16 << 20):
            with pytest.raises(ForeignRings):
                rings.make_way()
            assert vhosts.exists(vhost)
        rings.make_way()
        assert not vhosts.exists(vhost)


def test_a_file_without_a_number_names_no_rings(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(bytes(20))
    (tmp_path / FILE).chmod(0o600)
    with OwnRings(tmp_path, "no-such-vhost") as rings:
        assert rings.identity == 0


def test_a_member_does_not_start_over_a_vhost_of_programs(node: Made) -> None:
    two = node()
    with shmbroker.connect(f"shm://{two.vhosts['a']}", create=True) as program:
        program.declare_queue("orders").publish(b"in memory")
    assert two["a"].start().ends() == 1
    assert "has not made it" in two["a"].status.why
    assert two.bodies("a") == [b"in memory"]


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_a_member_does_not_start_over_the_vhost_of_another_one(
    node: Made, first: str, second: str
) -> None:
    """That serves, or follows."""
    two = node()
    file = two[second].folder / CONFIG
    file.write_text(file.read_text().replace(two.vhosts[second], two.vhosts[first]))
    two[first].start()
    two.says(first, "alone" if first == "a" else "joining")
    assert two[second].start().ends() == 1
    assert vhosts.exists(two.vhosts[first])
    if first == "a":
        orders = two.connected("a").declare_queue("orders", durable=True)
        orders.publish(b"one", timeout=PATIENCE)
