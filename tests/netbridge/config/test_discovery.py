"""[broadcast.NAME] and [discovery.NAME]: what is read, and what is refused, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.netbridge.config.config import Network, layers, load, option_of
from shmbroker.netbridge.config.explain import explained
from shmbroker.netbridge.discovery.option import BROADCASTS, DISCOVERIES, Means

CLUSTER = """
[connectors]
east.uri = "tcp://one:61619"
apps.uri = "tcp://one:61616"
[acceptors.town]
uri = "tcp://*:61619"
roles = ["cluster"]
credentials = "cluster.town"
[acceptors.apps]
uri = "tcp://*:61616"
credentials = "apps"
[credentials.apps]
password = "battery staple correct horse"
[cluster.town]
connector = "east"
user = "town"
password = "correct horse battery"
discovery-group = "lan"
"""
UDP = """
[broadcast.lan]
group-address = "231.7.7.7"
group-port = 9876
connector = "east"
[discovery.lan]
group-address = "231.7.7.7"
group-port = 9876
"""
REGISTRY = """
[broadcast.lan]
type = "registry"
registry = "found"
connector = "east"
[discovery.lan]
type = "registry"
registry = "/var/found"
channel = "here"
"""
APPS = """
[broadcast.apps]
group-address = "231.7.7.8"
group-port = 9876
connector = "apps"
credentials = "apps"
"""
GOOD = CLUSTER + UDP


def bridge(to: str) -> str:
    return f"""
[credentials.site]
password = "correct horse battery staple"
role = "peering"
[bridges.out]
queue = "orders"
to = "{to}"
"""


def loaded(folder: Path, text: str) -> Network:
    (folder / FILE).write_text(text)
    return load(folder)[1]


def test_udp_and_its_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD)
    means = Means("udp", "231.7.7.7", 9876)
    announced, looked = found.broadcasts["lan"], found.discoveries["lan"]
    assert announced.means == looked.means == means
    assert (announced.local_port, announced.period, looked.refresh) == (-1, 2.0, 10.0)
    assert str(announced.connector) == "tcp://one:61619"
    assert announced.credentials == looked.credentials == "cluster.town"
    assert found.cluster is not None
    assert (found.cluster.discovery_group, found.cluster.statics) == ("lan", ())


def test_a_registry_and_its_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, CLUSTER + REGISTRY)
    announced, looked = found.broadcasts["lan"].means, found.discoveries["lan"].means
    assert announced == Means("registry", registry=tmp_path / "found", channel="shmbroker")
    assert looked == Means("registry", registry=Path("/var/found"), channel="here")


def test_who_is_told_is_said_by_credentials(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD + APPS).broadcasts["apps"]
    assert (found.credentials, str(found.connector)) == ("apps", "tcp://one:61616")


def test_explained_and_reloaded(tmp_path: Path) -> None:
    loaded(tmp_path, GOOD)
    rows = {each.key: each for each in explained(layers(tmp_path), tmp_path / FILE)}
    assert rows["broadcast.lan.group-address"].value == "231.7.7.7"
    assert rows["discovery.lan.refresh-timeout"].source == "default"
    assert all(each.is_reloaded for each in (*BROADCASTS, *DISCOVERIES))
    assert option_of("discovery.a.b.channel") in DISCOVERIES


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("type", '"jgroups"', '"udp" or "registry"'),
        ("group-address", '"224.0.0.0"', "224.0.0.1…239.255.255.255"),
        ("group-address", '"240.0.0.0"', "224.0.0.1…239.255.255.255"),
        ("group-address", '"ff02::1"', "224.0.0.1…239.255.255.255"),
        ("group-address", "7", "224.0.0.1…239.255.255.255"),
        ("group-port", "0", "in 1…65535"),
        ("group-port", "65536", "in 1…65535"),
        ("local-bind-address", '"eth0"', "the IPv4 address of an interface"),
        ("local-bind-port", "0", "a port in 1…65535, or -1 for any"),
        ("local-bind-port", "-2", "a port in 1…65535, or -1 for any"),
        ("local-bind-port", "true", "a port in 1…65535, or -1 for any"),
        ("broadcast-period", "99", "in 100ms…1h"),
        ("broadcast-period", '"2h"', "in 100ms…1h"),
        ("refresh-timeout", "99", "in 100ms…1h"),
        ("refresh-timeout", '"2h"', "in 100ms…1h"),
        ("channel", '"a/b"', "a name of up to 64"),
        ("period", "1", "there is no option"),
    ],
)
def test_bounds(tmp_path: Path, key: str, value: str, complaint: str) -> None:
    root = "discovery" if key == "refresh-timeout" else "broadcast"
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, f"{CLUSTER}[{root}.x]\n{key} = {value}\n")
    assert f"{root}.x.{key}" in str(error.value)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            GOOD + 'channel = "c"',
            '[discovery.lan] has channel, which does not go with type = "udp"',
        ),
        (
            CLUSTER + REGISTRY + "group-port = 1",
            '[discovery.lan] has group-port, which does not go with type = "registry"',
        ),
        (
            (CLUSTER + REGISTRY).replace('connector = "east"\n[disc', "local-bind-port = 1\n[disc"),
            "[broadcast.lan] has local-bind-port, which does not go",
        ),
        (GOOD.replace("group-port = 9876", "", 1), "[broadcast.lan] has no group-port"),
        (
            GOOD.replace('group-address = "231.7.7.7"', "", 1),
            "[broadcast.lan] has no group-address",
        ),
        (
            CLUSTER + REGISTRY.replace('registry = "found"', ""),
            '[broadcast.lan] has no registry, and type = "registry" needs it',
        ),
        (GOOD.replace('connector = "east"\n[disc', "[disc"), "[broadcast.lan] has no connector"),
        (GOOD + APPS.replace('"apps"', '"x"', 1), "[connectors.x], which is not there"),
        (
            GOOD + APPS.replace('credentials = "apps"', 'credentials = "x"'),
            "broadcast.apps.credentials names [credentials.x], which is not there",
        ),
        (
            GOOD + APPS.replace('credentials = "apps"', ""),
            "[broadcast.apps] is signed for the cluster, and announces tcp://one:61616",
        ),
        (GOOD.replace("[discovery.lan]", "[discovery.wan]"), "names [discovery.lan], which is not"),
        (GOOD + 'credentials = "apps"', "hears what apps signs, and is to find members of"),
        (
            UDP.replace('connector = "east"', 'connector = "e"')
            + '[connectors.e]\nuri = "tcp://e"',
            "[broadcast.lan] has no credentials, and there is no [cluster.NAME]",
        ),
        (GOOD + "[broadcasts.x]", "there is no table [broadcasts]"),
        (GOOD + bridge("discovery:wan"), "bridges.out.to names [discovery.wan], which is not"),
        (
            GOOD + bridge("discovery:lan"),
            "bridges.out.to names [discovery.lan], which hears what cluster.town signs, and the "
            "bridge connects by site: both need the same credentials",
        ),
        (GOOD + bridge("discovery:(registry:/x)"), 'as in "discovery:lan", not'),
        (
            GOOD.replace("tcp://one:61619", "tcp://" + "h" * 510),
            "broadcast.lan.connector has more than 512 bytes",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, text)
    assert complaint in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / FILE}: ")
