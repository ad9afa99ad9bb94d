"""[links.NAME]: what a link is, what it cannot be yet, and what it does not go with."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.config.config import Network, load
from shmbroker.netbridge.network.demand import Terms
from shmbroker.netbridge.network.option import NOT_YET
from shmbroker.netbridge.plan.action import NoMember
from shmbroker.netbridge.plan.plans import drafts
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.security.credential import Credentials
from tests.support.plan_world import World

SITE = """
[credentials.site]
password = "correct horse battery"
role = "peering"
"""


def read(folder: Path, text: str) -> Network:
    (folder / FILE).write_text(text + SITE)
    return load(folder)[1]


def link(*lines: str, uri: str = "a") -> str:
    return "\n".join(["[links.x]", f"uri = '{uri}'", *lines, ""])


def test_defaults(tmp_path: Path) -> None:
    [found] = read(tmp_path, link()).links.values()
    assert (found.name, str(found.to), found.credentials) == ("x", "tcp://a:61616", "site")
    assert found.terms == Terms(1000, ("#",), (), (), False)
    assert not found.is_duplex
    assert found.times.heartbeat_interval == 0.2


def test_all_that_works(tmp_path: Path) -> None:
    text = link(
        "duplex = true", "prefetch-size = 5", "include = ['stock.#']", "exclude = ['stock.us']",
        "include-static = ['log']", "static-bridge = true", "heartbeat-interval = '1s'",
    )  # fmt: skip
    [found] = read(tmp_path, text).links.values()
    assert found.terms == Terms(5, ("stock.#",), ("log",), ("stock.us",), True)
    assert found.is_duplex
    assert found.times.heartbeat_interval == 1.0


@pytest.mark.parametrize(
    ("uri", "names"),
    [
        ("masterslave:(a,b)", ["x"]),
        ("failover:(a,b)", ["x"]),
        ("static:(a,b:5)", ["x@a:61616", "x@b:5"]),
        ("static:(a,masterslave:(b,c))", ["x@a:61616", "x@b:61616"]),
    ],
)
def test_one_link_for_each_service(tmp_path: Path, uri: str, names: list[str]) -> None:
    assert list(read(tmp_path, link(uri=uri)).links) == names


@pytest.mark.parametrize("key", NOT_YET)
def test_what_does_not_work_yet_says_so(tmp_path: Path, key: str) -> None:
    only, why = NOT_YET[key]
    given = "2" if type(only) is int else str(not only).lower()
    with pytest.raises(ConfigError, match=f"links.x.{key} can only be .* so far: {why}"):
        read(tmp_path, link(f"{key} = {given}"))
    assert read(tmp_path, link(f"{key} = {str(only).lower()}")).links


BRIDGE = "[bridges.x]\nqueue = 'q'\nto = 'b'\n"


def bridge(length: int, *lines: str) -> str:
    """Of a queue whose name has so many bytes."""
    return BRIDGE.replace("'q'", f"'{'q' * length}'") + "\n".join([*lines, ""])


CLUSTER = """
[connectors.a]
uri = "a"
[acceptors.a]
uri = "a"
roles = ["cluster"]
[cluster.town]
connector = "a"
user = "town"
password = "correct horse battery"
static-connectors = ["a"]
"""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (link("static-bridge = true"), "needs include-static"),
        (link(uri="static:(masterslave:(a,b),masterslave:(a,c))"), "twice"),
        (link(uri=f"static:({'a' * 130})"), "a name of at most 128 bytes"),
        (link("credentials = 'nobody'"), "names [credentials.nobody]"),
        (link() + BRIDGE, "another link, or a bridge, is called 'x'"),
        (link() + CLUSTER, "does not go with a [cluster.NAME] yet"),
        ("[ha]\npolicy = 'pair'\n" + link(), 'does not go with ha.policy = "pair" yet'),
        ("[links.x]\nduplex = true\n", "has no uri"),
        (link(uri="discovery:(udp://239.1.1.1:5000)"), "cannot discover"),
        (bridge(256), "bridges.x]: queue is too long: the name of a queue has at most 255 bytes"),
        (bridge(246, "filter = 'n > 1'"), "too long for $bridge.NAME.QUEUE"),
        (bridge(246, "transformer = 'os:path'"), "and this one would have 256"),
    ],
)
def test_what_does_not_go(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert complaint in str(error.value)


def test_a_bridge_of_a_queue_whose_name_just_fits(tmp_path: Path) -> None:
    for text in (bridge(255), bridge(245, "filter = 'n > 1'")):
        assert len(read(tmp_path, text).bridges["x"].ships) == 255


@pytest.mark.parametrize(
    "table",
    ["[links.x]\nuri = '{}'\n", "[bridges.x]\nqueue = 'q'\nto = '{}'\n",
     "[[mta]]\nname = 'e'\nhost = '{}'\nmode = 2\nlogin = 'site'\n"],
)  # fmt: skip
def test_a_list_without_rounds_of_its_own_is_tried_again_by_its_owner(
    tmp_path: Path, table: str
) -> None:
    """After each loss, by the back-off of the link."""
    uri = "failover:(a,b)?max-reconnect-attempts=0&randomize=false"
    [found] = Given(read(tmp_path, table.format(uri)), Credentials({})).shipping.values()
    [draft] = drafts(parse(str(found.to)))
    one = World(draft.plan(random.Random(1)))
    one.does["a"] = "up"
    one.start()
    one.does.clear()
    one.lose()
    assert len(one.of(NoMember)) == 1, "it is told at once"
    one.wake()
    one.wake()
    assert one.tried == ["a", *["a", "b"] * 3]
    one.does["b"] = "up"
    one.wake()
    assert one.plan.present == Single("b")


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, link(uri="tcp://me:SECRET@a:1"))
    assert "links.x.uri" in str(caught.value)
    assert "SECRET" not in str(caught.value)
