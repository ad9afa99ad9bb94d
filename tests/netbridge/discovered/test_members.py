"""Members of a cluster that find each other by discovery alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shmbroker.netbridge.discovered.announcer import Announcer
from shmbroker.netbridge.discovery.option import Broadcast, Means
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.security.stretched import Stretched
from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import PASSWORD
from tests.netbridge.discovered.conftest import Lan
from tests.support.hosts import Rack, has_hosts, rack

NAMES = ("east", "north", "west")


def all_see(lan: Lan) -> None:
    for name in NAMES:
        lan.cluster.sees(name, *(each for each in NAMES if each != name))


@pytest.fixture
def hosts() -> Iterator[Rack]:
    with rack(*NAMES) as made:
        yield made


@pytest.mark.skipif(not has_hosts(), reason="network namespaces are for root")
def test_three_hosts_by_multicast(lan: Lan, hosts: Rack) -> None:
    """The first one waits alone; the entry of one that is cut off expires, and returns."""
    for name in NAMES:
        address = hosts[name].address
        more: dict[str, object] = {
            f"connectors__{name}__uri": f"tcp://{address}:61619",
            "acceptors__town__uri": "tcp://*:61619",
            "link_defaults__heartbeat_interval": "500ms",
        }
        run = lan.add(name, lan.udp(address), **more)
        run.before = hosts[name].enter
        run.start().becomes("live")
    all_see(lan)
    told = lan.finds("east", dict.fromkeys(NAMES, "live"))
    assert told["ignored"]["strangers"] == 0
    listed = Shell(lan.cluster.vhosts["east"])("cluster", "list", str(lan.cluster["east"].folder))
    assert listed.lines[-1] == "discovery lan: 3 brokers"
    hosts.isolate("west")
    lan.cluster.sees("east", "north", missing=("west",))
    lan.logs("east", "expired")
    hosts.heal()
    all_see(lan)


def test_by_a_registry_an_expired_entry_closes_no_link(lan: Lan) -> None:
    """Though nothing but discovery has named the others."""
    for name in NAMES:
        lan.add(name, lan.registry, cluster__town__allow_direct_connections_only=True).start()
    all_see(lan)
    lan.logs("east", "found", times=3)  # others are linked before it has found them itself
    lan.folder.rename(lan.folder.with_name("away"))
    lan.logs("east", "expired", times=3)
    lan.finds("east", {})
    assert not lan.cluster.logged("east", "missing")
    lan.cluster.sees("east", "north", "west")
    lan.folder.with_name("away").rename(lan.folder)
    lan.logs("east", "found", times=6)
    assert not lan.cluster.logged("east", "missing")


def test_one_that_is_killed_is_found_again(lan: Lan) -> None:
    for name in ("east", "west"):
        lan.add(name, lan.registry).start()
    lan.cluster.sees("east", "west")
    lan.cluster["west"].kill()
    lan.cluster.sees("east", missing=("west",))
    lan.cluster["west"].start()
    lan.cluster.sees("east", "west")


def test_another_password_never_joins(lan: Lan) -> None:
    """One line on either side, a count, and no link."""
    lan.add("east", lan.registry).start().becomes("live")
    wrong = "another horse battery staple"
    lan.add("west", lan.registry, cluster__town__password=wrong).start().becomes("live")
    for name in ("east", "west"):
        lan.logs(name, "strangers")
        told = lan.finds(name, {name: "live"})
        assert told["ignored"]["strangers"] > 0
        assert [each["name"] for each in lan.cluster.told(name)["nodes"]] == [name]
        assert not [line for line in lan.cluster[name].said() if line["event"] == "link"]


def test_a_backup_is_announced_as_one_and_finds_the_others(lan: Lan) -> None:
    lan.add("east", lan.registry).start()
    lan.add("west", lan.registry).start().becomes("live")
    lan.add("west2", lan.registry, "backup", shares="west").start().becomes("passive")
    lan.cluster.until("east", lambda told: any(each["backups"] for each in told["nodes"]))
    lan.finds("east", {"east": "live", "west": "live", "west2": "backup"})
    lan.cluster["west"].kill()
    lan.cluster.sees("east", "west2")


def test_a_pair_of_a_replicated_node_and_its_passive_member(lan: Lan) -> None:
    """The passive one is announced as a backup, finds the other node, and takes over there."""
    soon: dict[str, object] = {"link_defaults__heartbeat_interval": "500ms"}
    lan.add("west", lan.registry, **soon).start()
    soon |= {"ha__replication__quorum_vote_wait": "1s"}
    lan.cluster.add_pair("east", ha__replication__quorum_size=2, **soon)
    lan.cluster.starts("east")
    lan.cluster.sees("west", "east")
    lan.cluster.sees("east2", "west")
    lan.finds("west", {"west": "live", "east": "live", "east2": "backup"})
    lan.cluster["east"].kill()
    lan.cluster.sees("west", "east2")


def test_a_reload_changes_how_long_an_entry_stays(lan: Lan) -> None:
    """Too short for the period: one warning."""
    lan.add("east", lan.registry).start().becomes("live")
    lan.add("west", lan.registry).start().becomes("live")
    lan.logs("east", "found", times=2)
    old, new = 'refresh-timeout = "1s"', 'refresh-timeout = "500ms"'
    assert lan.reloads("east", old, new) == ["discovery.lan.refresh-timeout"]
    lan.logs("east", "short")
    lan.logs("east", "found", times=4)
    assert len(lan.lines("east", "short")) == 1


def test_who_knows_the_secret_and_lies_costs_a_link_that_is_refused(lan: Lan) -> None:
    """An address of nobody, and one of somebody else: the others go on."""
    lan.add("east", lan.registry).start()
    means = Means("registry", registry=lan.folder, channel="shmbroker")
    liar = Broadcast("x", means, -1, 0.1, single("tcp://127.0.0.1:9"), "town")
    with Announcer(liar, (Stretched("town", PASSWORD),), "liar", lambda _: None) as announcer:
        announcer.becomes(b"L" * 16, 1, is_live=True)
        lan.logs("east", "found", times=2)
        lan.add("west", lan.registry).start()
        lan.cluster.sees("east", "west")
