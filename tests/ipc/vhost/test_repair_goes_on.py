"""One queue that cannot be opened is in the way of no other, nor of what others have left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from tests.conftest import SHM
from tests.support.holding import holding


def rings(vhost: str) -> set[Path]:
    return set(SHM.glob(f"shmbroker.{vhost}.queue-*"))


def two_that_died(broker: Broker, url: str, folder: Path) -> Path:
    """The first of them had a message of another queue beside that of `first`, whose ring this is.
    Who had that of `second` comes behind it."""
    before = rings(broker.vhost)
    broker.declare_queue("first").publish(b"1")
    (ring,) = rings(broker.vhost) - before
    for name, body in (("beside", b"2"), ("second", b"3")):
        broker.declare_queue(name).publish(body)
    with holding(url, ["first", "beside"], folder), holding(url, ["second"], folder):
        return ring


def has(broker: Broker, name: str, body: bytes) -> bool:
    return broker.queue(name).receive(timeout=0) == body


def replace(ring: Path) -> None:
    ring.unlink()
    ring.touch(0o600)


@pytest.mark.parametrize("loses", [Path.unlink, replace])
def test_a_ring_that_is_lost_is_left_out(
    broker: Broker, url: str, tmp_path: Path, loses: Callable[[Path], None]
) -> None:
    with shmbroker.connect(url) as other:
        loses(two_that_died(broker, url, tmp_path))
        assert other.repair() > 0
        assert has(other, "beside", b"2")
        assert has(other, "second", b"3")
        assert not [each for each in other.participants() if each.name == "holder"]
        assert [each for each in other.errors() if "a repair leaves out a queue" in each.text]


def test_one_that_may_be_had_later_is_repaired_then(
    broker: Broker, url: str, tmp_path: Path
) -> None:
    with shmbroker.connect(url) as other:
        ring = two_that_died(broker, url, tmp_path)
        ring.chmod(0o666)
        with pytest.raises(shmbroker.Untrusted, match=ring.name):
            other.repair()
        assert has(other, "beside", b"2")
        assert has(other, "second", b"3")
        assert len([each for each in other.participants() if each.name == "holder"]) == 1
        ring.chmod(0o600)
        assert other.repair() > 0
        assert has(other, "first", b"1")
