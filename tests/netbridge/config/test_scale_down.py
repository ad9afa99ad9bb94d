"""ha.policy = "live-only" and [ha.scale-down]: what is read, and what is refused, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.netbridge.cluster.scale_down import ScaleDown, order_of
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.replicated.options import checked, member
from tests.netbridge.config.town import TOWN

CLUSTER = TOWN + '[ha]\npolicy = "live-only"\n'
DISCOVERED = (
    CLUSTER.replace('static-connectors = ["north"]', 'discovery-group = "lan"')
    + """
[discovery.lan]
type = "registry"
registry = "lan"
"""
)
TABLE = '[ha.scale-down]\nconnectors = ["north"]\n'
GOOD = CLUSTER + TABLE
PEER = '[ha.replication]\non-partition = "stop-confirming"\n'
MEMBER = (
    GOOD.replace(
        '"live-only"',
        '"replication"\nrole = "backup"\nmembers = ["a=tcp://one:61620", "b=tcp://two:61620"]',
    )
    + PEER
    + """
[instance]
name = "b"
[acceptors.members]
uri = "tcp://*:61620"
roles = ["replica"]
[credentials.members]
password = "battery staple horse"
role = "replica"
"""
)
"""A backup of a replicated node."""


def loaded(folder: Path, text: str) -> ScaleDown | None:
    (folder / FILE).write_text(text)
    return load(folder)[1].scale_down


def test_any_member_of_a_cluster_whose_members_are_found(tmp_path: Path) -> None:
    table = '[ha.scale-down]\ndiscovery-group = "lan"\n'
    assert loaded(tmp_path, DISCOVERED + table) == ScaleDown((), "", None, None)
    narrowed = loaded(tmp_path, DISCOVERED + table + 'group-name = "blue"')
    assert narrowed == ScaleDown((), "blue", None, None)


def test_a_backup_of_a_shared_store_may_drain(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD.replace('"live-only"', '"shared-store"\nrole = "backup"'))
    assert found == ScaleDown(("tcp://two:61619",), "", None, None)


def test_a_backup_of_a_replicated_node_may_drain(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(MEMBER)
    config, network = load(tmp_path)
    assert network.scale_down == ScaleDown(("tcp://two:61619",), "", None, None)
    assert member(config, network, None).drains
    (tmp_path / FILE).write_text(MEMBER.replace(TABLE, TABLE + "enabled = false\n"))
    assert not member(*load(tmp_path), None).drains


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (MEMBER.replace("stop-confirming", "continue-alone"), "would serve once more what went"),
        (MEMBER.replace(PEER, PEER + 'activation = "command"\n'), 'activation = "auto"'),
        (MEMBER.replace(PEER, PEER + "max-replicas = 2\nmin-insync = 2\n"), "min-insync = 2: a"),
    ],
)
def test_a_member_that_could_not_drain_does_not_start(
    tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError) as error:
        checked(*load(tmp_path))
    assert complaint in str(error.value)


def test_defaults(tmp_path: Path) -> None:
    assert loaded(tmp_path, GOOD) == ScaleDown(("tcp://two:61619",), "", None, None)


def test_without_the_table_a_live_only_broker_just_stops(tmp_path: Path) -> None:
    assert loaded(tmp_path, CLUSTER) is None
    assert loaded(tmp_path, '[ha]\npolicy = "live-only"') is None


def test_what_is_said(tmp_path: Path) -> None:
    more = 'enabled = false\ngroup-name = "blue"\ncommit-interval = 5\ntimeout = "2m"\n'
    wanted = ScaleDown(("tcp://two:61619",), "blue", 5, 120.0, is_enabled=False)
    assert loaded(tmp_path, GOOD + more) == wanted
    alone = CLUSTER + '[ha.scale-down]\ngroup-name = "blue"\ntimeout = -1\ncommit-interval = -1\n'
    assert loaded(tmp_path, alone) == ScaleDown((), "blue", None, None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CLUSTER + "[ha.scale-down]\nenabled = true", "does not say to whom"),
        (CLUSTER + "[ha.scale-down]\n", "does not say to whom"),
        (GOOD.replace('["north"]\n[ha]', '["north"]\nmax-hops = 0\n[ha]'), "max-hops is not 0"),
        ('[ha]\npolicy = "live-only"\n[ha.scale-down]\ngroup-name = "a"', "needs a [cluster.NAME]"),
        (GOOD.replace("live-only", "shared-store"), 'or ha.role = "backup" with shared-store or'),
        (GOOD.replace("live-only", "replication") + PEER, 'or ha.role = "backup" with'),
        (GOOD.replace('"live-only"', '"live-only"\nrole = "backup"'), "there is no backup"),
        (GOOD + 'discovery-group = "lan"', "has connectors and discovery-group: say one of them"),
        (CLUSTER + '[ha.scale-down]\ndiscovery-group = "lan"', "its members without discovery"),
        (DISCOVERED.replace('group = "lan"\n[ha]', 'group = "wan"\n[ha]')
         + '[ha.scale-down]\ndiscovery-group = "lan"\n'
         + '[discovery.wan]\ntype = "registry"\nregistry = "w"',
         'finds its members by "wan"'),
        (GOOD.replace('["north"]\n', '["x"]\n').replace('= ["x"]\n[ha]', '= ["north"]\n[ha]'),
         "ha.scale-down.connectors names [connectors.x], which is not there"),
        (CLUSTER + '[ha.scale-down]\nconnectors = ["east"]', "which is this broker itself"),
        (CLUSTER + "[ha.scale-down]\nconnectors = []", "connectors is names of connectors"),
        (GOOD + "commit-interval = 0", "commit-interval is in 1…1000000, -1: no limit, not 0"),
        (GOOD + "commit-interval = -2", "commit-interval is in"),
        (GOOD + "timeout = 0", "ha.scale-down.timeout is in 1ms…1d, -1: no limit, not 0"),
        (GOOD + "enabled = 7", "ha.scale-down.enabled is"),
        (GOOD + "intervall = 1", "there is no option ha.scale-down.intervall"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, text)
    assert complaint in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / FILE}: ")


def test_named_brokers_are_asked_in_their_order_and_others_as_they_became_known() -> None:
    up = [(b"1", "tcp://one:1"), (b"2", "tcp://two:1"), (b"3", "tcp://three:1")]
    named = ScaleDown(("tcp://three:1", "tcp://gone:1", "tcp://one:1"), "", None, None)
    assert order_of(named, up) == [b"3", b"1"]
    assert order_of(ScaleDown((), "blue", None, None), up) == [b"1", b"2", b"3"]
