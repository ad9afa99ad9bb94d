"""What programs are told of nodes: the newest epoch counts, and rubbish ends the link."""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest

from shmbroker.netbridge.client.member import Member
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.remote.topology import (
    BACKUPS_MAX,
    NODES_MAX,
    Node,
    Topology,
    packed,
    unpacked,
)
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Standing

NODE = Node(b"n" * 16, 3, "first", "tcp://a:1", ("tcp://b:2", "tcp://c:3"), "here", "orders")
OTHER = Node(b"o" * 16, 9, "other", "tcp://d:4")


def test_what_is_packed_is_unpacked() -> None:
    assert unpacked(packed([NODE, OTHER])) == (NODE, OTHER)
    assert unpacked(packed([])) == ()


def test_a_later_version_may_tell_more_of_a_node() -> None:
    fields = msgpack.unpackb(packed([NODE]))
    assert unpacked(msgpack.packb([[*fields[0], "more"]])) == (NODE,)


def test_rubbish_is_malformed() -> None:
    fields = msgpack.unpackb(packed([NODE]))[0]
    for wrong in (
        b"", b"\xc1", msgpack.packb({}), msgpack.packb([7]), msgpack.packb([fields[:-1]]),
        msgpack.packb([["x", *fields[1:]]]), msgpack.packb([[*fields[:4], [7], *fields[5:]]]),
        msgpack.packb([[*fields[:4], ["tcp://a"] * (BACKUPS_MAX + 1), *fields[5:]]]),
        msgpack.packb([fields] * (NODES_MAX + 1)),
    ):  # fmt: skip
        with pytest.raises(Malformed):
            unpacked(wrong)


def test_what_is_told_takes_the_place_of_what_was_told_before() -> None:
    topology = Topology()
    assert topology.take([NODE, OTHER])
    assert not topology.take([NODE, OTHER])
    assert topology.take([OTHER])
    assert list(topology.nodes.values()) == [OTHER]


def test_a_former_live_changes_nothing() -> None:
    topology = Topology()
    topology.take([NODE])
    assert not topology.take([replace(NODE, epoch=2, live="tcp://x:9")])
    assert topology.take([replace(NODE, epoch=4, live="tcp://b:2", backups=())])
    assert topology.nodes[NODE.id].live == "tcp://b:2"


def test_a_member_is_what_is_told_of_the_newest_epoch() -> None:
    a, b, x = Single("a", 1), Single("b", 2), Single("x", 9)
    met = Identity(NODE.id, b"i" * 16, "former", Standing.LIVE, 2)
    assert Member.of(a, met, [NODE]) == Member("tcp://a:1", "live", "first", NODE.id.hex(), 3)
    assert Member.of(b, met, [NODE]) == Member("tcp://b:2", "backup", "", NODE.id.hex(), 3)
    newer = replace(met, epoch=4)
    assert Member.of(b, newer, [NODE]).standing == "live", "it has said so itself since"
    assert Member.of(x, None, [NODE]) == Member("tcp://x:9", "", "", "", 0)
