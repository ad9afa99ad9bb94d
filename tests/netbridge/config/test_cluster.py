"""[cluster.NAME]: what is read, and what is refused, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.netbridge.cluster.option import CLUSTERS, NO_COUNTERPART
from shmbroker.netbridge.config.config import Network, load
from shmbroker.netbridge.link.option import overridden, times_of
from shmbroker.netbridge.wire.words import Role

BEFORE = """
[connectors]
east.uri = "tcp://one:61619"
north.uri = "tcp://two:61619"
"""
ACCEPTOR = """
[acceptors.town]
uri = "tcp://*:61619"
roles = ["cluster"]
"""
LOGIN = """
[credentials.town]
password = "correct horse battery"
role = "cluster"
"""
TABLE = """
[cluster.town]
connector = "east"
static-connectors = ["north", "east"]
max-hops = 0
"""
OWN = 'user = "town"\npassword = "correct horse battery"\n'
STATICS = 'static-connectors = ["north", "east"]'
GOOD = BEFORE + ACCEPTOR + TABLE + OWN


def loaded(folder: Path, text: str) -> Network:
    (folder / FILE).write_text(text)
    return load(folder)[1]


def test_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD).cluster
    assert found is not None
    assert (found.name, str(found.connector)) == ("town", "tcp://one:61619")
    assert [str(each) for each in found.statics] == ["tcp://two:61619", "tcp://one:61619"]
    assert not found.allow_direct_connections_only
    assert (found.retry_interval, found.retry_interval_multiplier) == (0.5, 1.0)
    assert found.max_retry_interval == 2.0
    assert (found.initial_connect_attempts, found.reconnect_attempts) == (-1, -1)
    assert (found.notification_interval, found.notification_attempts) == (1.0, 2)


def test_user_and_password_are_credentials_of_its_own(tmp_path: Path) -> None:
    network = loaded(tmp_path, GOOD)
    assert network.cluster is not None
    login = network.logins[network.cluster.credentials]
    assert (login.user, login.roles) == ("town", (Role.CLUSTER,))
    assert network.acceptors["town"].credentials == login.name


def test_credentials_in_their_place(tmp_path: Path) -> None:
    text = BEFORE + ACCEPTOR + LOGIN + TABLE + 'credentials = "town"\n'
    network = loaded(tmp_path, text)
    assert network.cluster is not None
    assert network.cluster.credentials == "town"


def test_most_brokers_are_in_none(tmp_path: Path) -> None:
    assert loaded(tmp_path, "").cluster is None


GIVEN: dict[str, object] = {
    "min-large-message-size": "1KiB", "call-failover-timeout": "1s",
    "topology-scanner-attempts": 3,
}  # fmt: skip


def test_what_is_said_of_its_links_comes_before_the_defaults(tmp_path: Path) -> None:
    text = (
        f'{GOOD}check-period = "1s"\nconnection-ttl = "5s"\nuse-duplicate-detection = false\n'
        'confirmation-window-size = "2MiB"\nproducer-window-size = -1\n'
        '[link-defaults]\nheartbeat-interval = "1s"\nwindow-size = "4MiB"\n'
        'connect-timeout = "3s"\n'
    )
    found = loaded(tmp_path, text)
    assert found.cluster is not None
    times = times_of(overridden(found.link_defaults, found.cluster.of_links))
    assert (times.heartbeat_interval, times.silence, times.exact) == (1.0, 5.0, False)
    assert (times.window_size, times.connect_timeout) == (2 << 20, 3.0)


def test_what_is_not_said_of_its_links_is_as_the_defaults_are(tmp_path: Path) -> None:
    found = loaded(tmp_path, f'{GOOD}[link-defaults]\nwindow-size = "4MiB"\n')
    assert found.cluster is not None
    assert found.cluster.of_links == {}
    found = loaded(tmp_path, f"{GOOD}producer-window-size = -1\n")
    assert found.cluster is not None
    assert found.cluster.of_links == {"window-size": -1}


@pytest.mark.parametrize(
    ("text", "covered", "others"),
    [
        ("", "orders", "!"),
        ("orders, stock.", "orders.new", "stocks"),
        ("!orders.local", "orders", "orders.local.x"),
        ("orders,!orders.local", "orders.far", "orders.local"),
        ("orders,!orders.local", "orders", "stock"),
    ],
)
def test_the_addresses_that_it_is_for(
    tmp_path: Path, text: str, covered: str, others: str
) -> None:
    found = loaded(tmp_path, f'{GOOD}address = "{text}"\n')
    assert found.cluster is not None
    assert found.cluster.addresses.has(covered)
    assert not found.cluster.addresses.has(others) or not text


@pytest.mark.parametrize("name", NO_COUNTERPART)
def test_what_would_change_nothing_is_an_error(tmp_path: Path, name: str) -> None:
    given = GIVEN[name]
    value = str(given).lower() if isinstance(given, (bool, int)) else f'"{given}"'
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, f"{GOOD}{name} = {value}\n")
    why = f"[cluster.town] has {name}, which has no counterpart here: {NO_COUNTERPART[name]}"
    assert why in str(error.value)
    [row] = [each for each in CLUSTERS if each.name == name]
    assert row.help == f"Refused, has no counterpart here: {NO_COUNTERPART[name]}."


def test_the_name_of_its_links_and_how_long_it_waits_for_answers(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD).cluster
    assert found is not None
    assert (found.link_name, found.call_timeout) == ("cluster town", 30.0)
    found = loaded(tmp_path, f'{GOOD}client-id = "rack 1"\ncall-timeout = "2s"\n').cluster
    assert found is not None
    assert (found.link_name, found.call_timeout) == ("cluster rack 1", 2.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD + 'address = "orders,,x"', "prefixes with commas, as in"),
        (GOOD + 'address = "!"', "prefixes with commas, as in"),
        (GOOD + 'check-period = "3s"\nconnection-ttl = "5s"', "at least twice check-period"),
        (GOOD.replace("max-hops = 0", "max-hops = 256"), "max-hops is in 0…255, not 256"),
        (GOOD.replace("cluster.town", f"cluster.{'t' * 129}"), "name has at most 128 bytes"),
        (GOOD.replace("cluster.town", 'cluster."a/b"'), "no slash and no control characters"),
        (GOOD.replace("cluster.town", 'cluster."a\\n"'), "no slash and no control characters"),
        (GOOD.replace("cluster.town", 'cluster.""'), "is not empty"),
        (GOOD + "retry-interval-multiplier = nan", "retry-interval-multiplier is a number"),
        (GOOD.replace('connector = "east"', "", 1), "[cluster.town] has no connector"),
        (GOOD.replace('connector = "east"', 'connector = "x"', 1), "[connectors.x], which is not"),
        (GOOD.replace('"north", ', '"south", '), "names [connectors.south], which is not there"),
        (GOOD.replace(STATICS, ""), "has no static-connectors and no discovery-group"),
        (GOOD + 'discovery-group = "lan"', "has static-connectors and discovery-group: say one"),
        (GOOD.replace('["north", "east"]', "[]"), "static-connectors is names of connectors"),
        (GOOD.replace('user = "town"', ""), "user and password go together"),
        (GOOD.replace(OWN, ""), "needs user and password, or credentials, and not both"),
        (GOOD + 'credentials = "town"', "needs user and password, or credentials, and not both"),
        (BEFORE + ACCEPTOR + TABLE + 'credentials = "x"', "[credentials.x], which is not there"),
        (BEFORE + TABLE + OWN, "needs an [acceptors.NAME] with roles"),
        (GOOD.replace('["cluster"]', '["cluster", "client"]'), "has the role cluster, and others"),
        (GOOD + "retry-interval = 0", "cluster.town.retry-interval is in 1ms…1h, not 0"),
        (GOOD + "retry-interval-multiplier = 11", "retry-interval-multiplier is in 1…10, not 11"),
        (GOOD + "reconnect-attempts = -2", "reconnect-attempts is in"),
        (GOOD + "notification-attempts = 1001", "notification-attempts is in 0…1000"),
        (GOOD + "retry = 1", "there is no option cluster.town.retry; did you mean"),
        (GOOD + GOOD.replace("town]", "ville]").replace(BEFORE, ""), "a broker is in one cluster"),
        (GOOD + '[ha]\npolicy = "pair"', 'does not go with ha.policy = "pair"'),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, text)
    assert complaint in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / FILE}: ")
