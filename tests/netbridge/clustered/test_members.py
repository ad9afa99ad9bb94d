"""Brokers of a cluster that are not replicated: they find each other, go and come."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import Cluster
from tests.support.until import until

NAMES = ("east", "north", "west")


@pytest.fixture
def three(cluster: Cluster) -> Cluster:
    """All of them look for `east` only."""
    for name in NAMES:
        cluster.add(name).start()
    for name in NAMES:
        cluster.sees(name, *(each for each in NAMES if each != name))
    return cluster


def test_its_links_have_the_name_that_it_says(cluster: Cluster) -> None:
    cluster.add("east").start()
    cluster.add("west", cluster__town__client_id="rack 1").start()
    cluster.sees("east", "west")
    names = {each["link"] for each in cluster["east"].said() if each["event"] == "link"}
    assert f"cluster rack 1: tcp://127.0.0.1:{cluster.ports['east']}" in names


def test_all_are_learned_through_one_connector(three: Cluster) -> None:
    for name in NAMES:
        told = three.told(name)
        assert (told["lives"], told["needed"]) == (3, 2)
        assert {each["name"]: each["address"] for each in told["nodes"]} == {
            each: f"tcp://127.0.0.1:{three.ports[each]}" for each in NAMES
        }
        three.until(name, lambda told: told["votes"] and told["can-vote"])


def test_one_that_is_killed_is_missing_and_comes_back(three: Cluster) -> None:
    three["west"].kill()
    told = three.sees("north", "east", missing=("west",))
    assert (told["lives"], told["can-vote"]) == (3, False)
    [line] = three.logged("north", "missing")
    assert "west" in line["detail"]
    three["west"].start()
    told = three.sees("north", "east", "west")
    assert told["lives"] == 3


def test_one_that_was_given_up_is_reached_when_it_comes_by_itself(cluster: Cluster) -> None:
    more = {"cluster__town__max_hops": 1, "cluster__town__reconnect_attempts": 1}
    for name in ("east", "west"):
        cluster.add(name, **more).start()
    [node] = [each for each in cluster.sees("east", "west")["nodes"] if each["hops"]]
    links = {f"cluster town: {cluster.uri('west')}", f"forwarding {node['node']}"}

    def became(state: str, times: int) -> None:
        """Each of these links, so often."""
        def counts() -> Counter[str]:
            lines = cluster["east"].said()
            return Counter(
                each["link"] for each in lines if each["event"] == "link" and each["state"] == state
            )

        until(lambda: all(counts()[each] >= times for each in links))

    became("up", 1)
    cluster["west"].kill()
    became("lost", 1)
    cluster["west"].start()
    became("up", 2)


def test_a_node_is_forgotten_by_command(three: Cluster) -> None:
    west = three.told("west")["node"]
    three["west"].stop()
    three.sees("east", "north", missing=("west",))
    assert "north is there: stop it first" in three.order("east", verb="forget", node="north")
    assert "there is no node 'south'" in three.order("east", verb="forget", node="south")
    assert three.order("east", verb="forget", node="west") == ""
    for name, other in (("east", "north"), ("north", "east")):
        told = three.until(name, lambda told: told["lives"] == 2)
        assert [each["name"] for each in told["nodes"] if each["hops"]] == [other]
        assert told["needed"] == 1
    [line] = [line for line in three["east"].said() if line["event"] == "audit"]
    assert (line["name"], line["node"]) == ("west", west)
    three["west"].start()
    told = three.sees("west", "east", "north")
    three.until("north", lambda told: told["lives"] == 3)


def test_a_takeover_on_a_shared_store_is_the_same_node(cluster: Cluster) -> None:
    cluster.add("east").start()
    cluster.add("west").start().becomes("live")
    cluster.add("west2", "backup", shares="west").start().becomes("passive")
    told = cluster.until("east", lambda told: any(each["backups"] for each in told["nodes"]))
    [west] = [each for each in told["nodes"] if each["hops"]]
    assert west["backups"] == {"west2": f"tcp://127.0.0.1:{cluster.ports['west2']}"}
    assert told["lives"] == 2
    cluster["west"].kill()
    told = cluster.sees("east", "west2")
    [successor] = [each for each in told["nodes"] if each["hops"]]
    assert successor["node"] == west["node"]
    assert successor["epoch"] > west["epoch"]
    assert told["lives"] == 2
    cluster.until("west2", lambda told: told["votes"] and told["lives"] == 2)


def test_a_wrong_password_never_joins(cluster: Cluster) -> None:
    cluster.add("east").start().becomes("live")
    cluster.add("west", cluster__town__password="another horse battery").start().becomes("live")
    cluster.refused("west")
    for name in ("east", "west"):
        told = cluster.until(name, lambda told: told["votes"])
        assert [each["name"] for each in told["nodes"]] == [name]
        assert told["needed"] is None


def test_the_command_line(three: Cluster) -> None:
    shell, folder = Shell(three.vhosts["east"]), str(three["east"].folder)
    listed = shell("cluster", "list", folder).lines
    assert listed[0].split() == [
        "NAME", "NODE", "ADDRESS", "STATE", "HOPS", "EPOCH", "VERSION", "WAITING",
        "BACKUPS",
    ]  # fmt: skip
    assert [line.split()[0] for line in listed[1:4]] == list(NAMES)
    assert listed[-1] == "3 lives: 2 of the others have to say yes"
    assert shell("cluster", "list", folder, "--names").lines == list(NAMES)
    assert shell("cluster", "list", folder, "--json").json["lives"] == 3
    assert "CLUSTER OK" in shell("check", "cluster", folder).out
    west = three.told("west")["node"]
    three["west"].kill()
    three.sees("east", "north", missing=("west",))
    checked = shell("check", "cluster", folder)
    assert checked.code == 2
    assert "missing: west" in checked.out
    assert "no vote could succeed now" in checked.out
    assert "add --yes" in shell("cluster", "forget", folder, "west").said
    assert "there is no node ''" in shell("cluster", "forget", folder, "", "--yes").said
    forgotten = shell("cluster", "forget", folder, "west", "--yes")
    assert (forgotten.code, forgotten.said) == (0, f"west ({west}) is forgotten\n")
    assert shell("cluster", "list", folder).lines[-1].startswith("2 lives: 1 of the others")
    three["east"].kill()
    for verb in ("list", "queues"):
        silent = shell("cluster", verb, folder)
        assert (silent.code, silent.out) == (1, "")
        assert "does not run, or is not live yet: shmbroker status" in silent.said
