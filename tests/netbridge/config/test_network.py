"""The tables that concern other hosts: each key, what goes together, where values come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError, toml_of
from shmbroker.ipc.instance.config.kind import FLAG
from shmbroker.ipc.instance.config.option import Option
from shmbroker.ipc.instance.config.secret import SecretRefused
from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.config.config import ALL, OURS, Network, layers, load, option_of
from shmbroker.netbridge.config.explain import explained
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.network.option import NETWORK_LINKS
from shmbroker.netbridge.plan.uri import Members, Single
from shmbroker.netbridge.security.password import PasswordRefused
from shmbroker.netbridge.wire.words import Role

HIDDEN = "correct horse battery"
WHOLE = f"""
[connectors.here]
uri = "tcp://broker1"
[acceptors.apps]
uri = "tcp://*:5000"
[credentials.apps]
password = "{HIDDEN}"
"""


def read(folder: Path, text: str) -> Network:
    (folder / FILE).write_text(text)
    return load(folder)[1]


def test_an_instance_without_any_of_it(tmp_path: Path) -> None:
    found = read(tmp_path, "")
    assert not found.acceptors
    assert found.heartbeat == (0.2, pytest.approx(0.6))
    assert found.link_defaults["refused-retry-interval"] == 60.0


def test_what_is_given(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE)
    assert found.connectors == {"here": Single("broker1")}
    acceptor = found.acceptors["apps"]
    assert (acceptor.uri, acceptor.roles) == (Single("*", 5000), (Role.CLIENT,))
    assert acceptor.credentials == "apps", "the only ones that may connect"
    assert acceptor.session_ttl == 60.0
    login = found.logins["apps"]
    assert (login.user, login.roles, login.accept_also) == ("apps", (Role.CLIENT,), ())


@pytest.mark.parametrize(
    ("defaults", "params", "interval", "silence"),
    [
        ("", "", 0.2, 0.6),
        ("", "?heartbeat-interval=5s", 5.0, 15.0),
        ('heartbeat-interval = "1s"', "?heartbeatMisses=2", 1.0, 2.0),
        ('check-period = "1s"', "", 1.0, 60.0),
        ('check-period = "1s"', "?heartbeat-interval=5s", 5.0, 15.0),
    ],
)
def test_the_uri_of_an_acceptor_may_have_times_of_its_links(
    tmp_path: Path, defaults: str, params: str, interval: float, silence: float
) -> None:
    given = WHOLE.replace("tcp://*:5000", f"tcp://*:5000{params}")
    assert params in given
    found = read(tmp_path, f"{given}\n[link-defaults]\n{defaults}\n")
    times = found.acceptors["apps"].times
    assert times_of(found.link_defaults), "both forms of heartbeats are not in it"
    assert times.heartbeat_interval == interval
    assert times.silence == pytest.approx(silence)


GOOD: dict[str, tuple[object, object]] = {
    "connectors.x.uri": ("a:5", Single("a", 5)),
    "acceptors.x.uri": ("tcp://[::1]:5", Single("::1", 5)),
    "acceptors.x.roles": (["client", "admin"], (Role.CLIENT, Role.ADMIN)),
    "acceptors.x.credentials": ("x", "x"),
    "acceptors.x.session-ttl": (1500, 1.5),
    "acceptors.x.update-cluster-clients": ("yes", True),
    "acceptors.x.update-cluster-clients-on-remove": (1, True),
    "acceptors.x.rebalance-cluster-clients": (True, True),
    "acceptors.x.queue-replicas": (True, True),
    "acceptors.x.update-cluster-filter": (["rack.#"], ("rack.#",)),
    "credentials.x.user": ("me", "me"),
    "credentials.x.role": ("cluster", (Role.CLUSTER,)),
    "bridges.x.queue": ("orders", "orders"),
    "bridges.x.to": ("a:5", Single("a", 5)),
    "bridges.x.forwarding-address": ("orders", "orders"),
    "bridges.x.filter": ("n > 1", "n > 1"),
    "bridges.x.transformer": ("our.bridges:loud", "our.bridges:loud"),
    "bridges.x.credentials": ("x", "x"),
    "bridges.x.retry-interval": ("1s", 1.0),
    "bridges.x.retry-interval-multiplier": (2, 2.0),
    "bridges.x.max-retry-interval": (5000, 5.0),
    "bridges.x.initial-connect-attempts": (3, 3),
    "bridges.x.reconnect-attempts": (0, 0),
    "links.x.uri": ("a:5", Single("a", 5)),
    "links.x.include-static": (["stock.*"], ("stock.*",)),
    "links.x.max-hops": (-1, -1),
    "mta.x.name": ("quotes", "quotes"),
    "mta.x.host": ("a:5,b", Members("masterslave", (Single("a", 5), Single("b")))),
    "mta.x.mode": ("locator", Mode.FORWARD_ELSE),
    "mta.x.max-hops": (15, 15),
    "console.listen": ("[::1]:8161", ("::1", 8161)),
    "console.credentials": (["operator"], ("operator",)),
    "console.names": (["broker.example"], ("broker.example",)),
    "console.others": (["b=https://two:8161/"], (("b", "https://two:8161/"),)),
    "console.tls-cert": ("c", "c"),
    "console.metrics-open": (True, True),
    "security.key-file": ("k", "k"),
    "security.known-keys": ("k", "k"),
    "link-defaults.heartbeat-interval": ("10ms", 0.01),
    "link-defaults.heartbeat-misses": (2, 2),
    "link-defaults.check-period": (30_000, 30.0),
    "link-defaults.connection-ttl": ("60s", 60.0),
    "link-defaults.connect-timeout": (1, 0.001),
    "link-defaults.handshake-timeout": ("5s", 5.0),
    "link-defaults.call-timeout": (-1, -1),
    "link-defaults.call-failover-timeout": ("1s", 1.0),
    "link-defaults.window-size": (-1, -1),
    "link-defaults.window-messages": (0, 0),
    "link-defaults.use-duplicate-detection": ("no", False),
    "link-defaults.pending-ack-timeout": (0, 0.0),
    "link-defaults.origin-retention": ("1h", 3600.0),
    "link-defaults.refused-retry-interval": (-1, -1),
    "link-defaults.max-frame-size": ("64KiB", 65536),
}
BAD: dict[str, tuple[object, str]] = {
    "connectors.x.uri": ("tcp://*:5", "an address that others can connect to"),
    "acceptors.x.uri": ("static:(a)", "one broker is named"),
    "acceptors.x.roles": ([], "one of client, cluster"),
    "acceptors.x.credentials": ("a/b", "the NAME of"),
    "acceptors.x.session-ttl": (-1, "a time"),
    "acceptors.x.update-cluster-clients": ("maybe", "true or false"),
    "acceptors.x.update-cluster-clients-on-remove": (2, "true or false"),
    "acceptors.x.rebalance-cluster-clients": ("", "true or false"),
    "acceptors.x.queue-replicas": ("", "true or false"),
    "acceptors.x.update-cluster-filter": ("rack", "patterns of names"),
    "credentials.x.user": ("a/b", "a name of up to 255 bytes"),
    "credentials.x.password": (5, "text, { env ="),
    "credentials.x.accept-also": ([5], "text, { env ="),
    "credentials.x.role": ("boss", "one of client, cluster"),
    "bridges.x.queue": ("", "text"),
    "bridges.x.to": ("static:(a,b)", "one broker or one service"),
    "bridges.x.forwarding-address": ("topic://t", "a queue or an exchange there"),
    "bridges.x.filter": ("n >", "a selector"),
    "bridges.x.transformer": ("loud", "a function"),
    "bridges.x.credentials": ("a/b", "the NAME of"),
    "bridges.x.retry-interval": (0, "in 1ms…1h"),
    "bridges.x.retry-interval-multiplier": (0.5, "in 1…10"),
    "bridges.x.max-retry-interval": ("2h", "in 1ms…1h"),
    "bridges.x.initial-connect-attempts": (-2, "in 0…, -1: no limit"),
    "bridges.x.reconnect-attempts": (-2, "in 0…, -1: no limit"),
    "console.listen": ("8161", "an address and a port"),
    "console.credentials": ("operator", "names, as in"),
    "console.names": ([""], "names, as in"),
    "console.others": (["b=javascript:alert(1)"], "names and addresses, as in"),
    "console.tls-cert": (5, "a folder"),
    "console.tls-key": (5, "a folder"),
    "console.metrics-open": ("maybe", "true or false"),
    "security.key-file": (5, "a folder"),
    "security.known-keys": (5, "a folder"),
    "link-defaults.heartbeat-interval": ("9ms", "in 10ms…60s"),
    "link-defaults.heartbeat-misses": (101, "in 2…100"),
    "link-defaults.check-period": ("x", "a time"),
    "link-defaults.connection-ttl": (0, "in 20ms…1d"),
    "link-defaults.connect-timeout": (0, "in 1ms…1h"),
    "link-defaults.handshake-timeout": (0, "in 1ms…1h"),
    "link-defaults.call-timeout": (0, "in 1ms…1d, -1: no limit"),
    "link-defaults.call-failover-timeout": (-2, "a time, as in"),
    "link-defaults.window-size": (-2, "or -1"),
    "link-defaults.window-messages": (-2, "in 0…, -1: no limit"),
    "link-defaults.use-duplicate-detection": (2, "true or false"),
    "link-defaults.pending-ack-timeout": ("25h", "in …1d"),
    "link-defaults.origin-retention": ("59m", "in 1h…, -1: no limit"),
    "link-defaults.refused-retry-interval": (0, "in 100ms…1d, -1: no limit"),
    "link-defaults.max-frame-size": ("65MiB", "in 64KiB…64MiB"),
}


BAD |= {
    f"ha.replication.{name}": bad
    for name, bad in {
        "group-name": (1, "text, as in"),
        "cluster-name": (1, "text, as in"),
        "check-for-live-server": (2, "true or false"),
        "check-for-live-wait": (0, "in 100ms…1h"),
        "vote-on-replication-failure": (2, "true or false"),
        "on-lost-vote": ("stop", '"shutdown" or "demote"'),
        "on-partition": ("x", '"stop-confirming" or "continue-alone"'),
        "witnesses": (["tcp://a", "tcp://b"], "1, 3 or 5 uris"),
        "lease": ("61s", "0s (off) or in 100ms…60s"),
        "quorum-size": (-2, "in -1…1000"),
        "quorum-recalculate": ("never", '"restart" or "command"'),
        "vote-retries": (-1, "in 0…"),
        "vote-retry-wait": (0, "in 1ms…1h"),
        "quorum-vote-wait": ("x", "a time"),
        "network-check": ("gateway", "hosts and ports"),
        "lock-manager": ("etcd", '"votes" or "zookeeper" or "sql"'),
        "activation": ("x", '"auto" or "command"'),
        "initial-replication-sync-timeout": (0, "in 1ms…1h"),
        "retry-replication-wait": (0, "in 1ms…1h"),
        "resync-bytes": (-2, "or -1"),
        "max-saved-replicated-journals-size": (-2, "in 0…"),
        "max-replicas": (8, "in 1…7"),
        "min-insync": (0, "in 1…8"),
        "replica-timeout": (0, "in 10ms…1h"),
        "replica-ack": ("memory", '"received" or "disk"'),
        "handover-timeout": ("1s", "in 2s…1h"),
        "backup-timeout": ("2h", "in …1h"),
    }.items()
}
BAD |= {
    f"ha.pair.{name}": bad
    for name, bad in {
        "vhost": ("a/b", "without a slash"),
        "credentials": ("a/b", "the NAME of a [credentials.NAME]"),
        "primary-peer": ("tcp://*:1", "the address of a broker"),
        "backup-peer": (5, "a broker, as in"),
        "is-primary": ("maybe", ""),
        "is-backup": ("maybe", ""),
        "failover-timeout": ("61s", ""),
        "accept-when-pending": ("backup", '"primary" or "none"'),
        "on-conflict": ("none", '"stop-both" or'),
    }.items()
}
BAD |= {
    f"ha.scale-down.{name}": bad
    for name, bad in {
        "enabled": ("maybe", ""),
        "connectors": ([], 'names of connectors, as in ["one", "two"]'),
        "discovery-group": (1, "text, as in"),
        "group-name": (1, "text, as in"),
        "commit-interval": (0, "in 1…1000000, -1: no limit"),
        "timeout": (0, "in 1ms…1d, -1: no limit"),
    }.items()
}
BAD |= {
    f"ha.colocated.{name}": bad
    for name, bad in {
        "request-backup": ("maybe", ""),
        "max-backups": (65, "in 0…64"),
        "backup-request-retries": (-2, "-1: no limit"),
        "backup-request-retry-interval": (0, "in 1ms…1h"),
        "backup-port-offset": (0, "in 1…65535"),
        "excludes": ("east", 'names of connectors, as in ["east"]'),
        "live": (1, "a table with options of [ha]"),
        "backup": (1, "a table with options of [ha]"),
    }.items()
}
BAD |= {
    f"grouping.x.{name}": bad
    for name, bad in {
        "type": ("both", '"local" or "remote"'),
        "address": (1, "prefixes with commas"),
        "timeout": (0, "in 1ms…1h"),
        "group-timeout": (0, "in 1ms…365d, -1: no limit"),
        "reaper-period": (0, "in 10ms…1d"),
    }.items()
}
BAD |= {
    f"ha.zookeeper.{name}": bad
    for name, bad in {
        "connect": ("one", "servers, as in"),
        "namespace": ("nodes", "a path in ZooKeeper"),
        "session-timeout": (1, "in 1s…60s"),
        "credentials": (1, "text, as in"),
        "tls-ca": (1, "a folder"),
        "tls-cert": (1, "a folder"),
        "tls-key": (1, "a folder"),
    }.items()
}
OF_BOTH: Final = {
    "type": ("jgroups", '"udp" or "registry"'),
    "group-address": ("224.0.0.0", "an address of a multicast group"),
    "group-port": (0, "in 1…65535"),
    "local-bind-address": ("eth0", "the IPv4 address of an interface"),
    "registry": ("", "text, as in"),
    "channel": ("a/b", "a name of up to 64"),
    "credentials": (1, "text, as in"),
}
BAD |= {
    f"{table}.x.{name}": bad
    for table, own in {
        "broadcast": {
            "local-bind-port": (0, "a port in 1…65535"),
            "broadcast-period": (99, "in 100ms…1h"),
            "connector": (1, "text, as in"),
        },
        "discovery": {"refresh-timeout": ("2h", "in 100ms…1h")},
    }.items()
    for name, bad in (OF_BOTH | own).items()
}
BAD |= {
    f"cluster.x.{name}": bad
    for name, bad in {
        "connector": (1, "text, as in"),
        "user": ("a/b", "a name of up to 255 bytes"),
        "password": (1, "{ masked ="),
        "credentials": (1, "text, as in"),
        "static-connectors": ([], "names of connectors"),
        "discovery-group": (1, "text, as in"),
        "allow-direct-connections-only": (2, "true or false"),
        "address": (1, "prefixes with commas"),
        "message-load-balancing": ("always", '"on-demand" or "strict"'),
        "max-hops": (256, "in 0…255"),
        "retry-interval": (0, "in 1ms…1h"),
        "retry-interval-multiplier": (0.5, "in 1…10"),
        "max-retry-interval": ("2h", "in 1ms…1h"),
        "initial-connect-attempts": (-2, "-1: no limit"),
        "reconnect-attempts": ("x", "a number or -1"),
        "use-duplicate-detection": (2, "true or false"),
        "confirmation-window-size": ("x", "a size"),
        "producer-window-size": (-2, "a size"),
        "min-large-message-size": ("x", "a size"),
        "client-id": ("", "text, as in"),
        "call-timeout": (0, "in 1ms…1h"),
        "call-failover-timeout": (0, "in 1ms…1h"),
        "check-period": (0, "in 10ms…1h"),
        "connection-ttl": (0, "in 20ms…1d"),
        "notification-interval": (0, "in 1ms…1h"),
        "notification-attempts": (1001, "in 0…1000"),
        "topology-scanner-attempts": (-2, "-1: no limit"),
    }.items()
}
BAD |= {
    f"links.x.{name}": bad
    for name, bad in {
        "uri": ("shm://here", "a broker or a list"),
        "credentials": ("a/b", "the NAME of"),
        "prefetch-size": (0, "in 1…10000"),
        **dict.fromkeys(("include", "include-static", "exclude"), ("#", "patterns of names")),
        **dict.fromkeys(
            ("max-hops", "network-ttl", "message-ttl", "consumer-ttl"), (0, "in 1…255, -1")
        ),
        **{option.name: (2, "true or false") for option in NETWORK_LINKS if option.kind is FLAG},
    }.items()
}
BAD |= {
    f"mta.x.{name}": bad
    for name, bad in {
        "name": ("", "the default exchange cannot be joined"),
        "vhost": ("a/b", "without a slash"),
        "host": ("static:(a,b)", "an [[mta]] for each"),
        "login": ("a/b", "the NAME of"),
        "mode": (5, "0 to 4, or off"),
        "max-hops": (16, "in 1…15"),
        "max-messages": (0, "in 1…1048576"),
        "max-bytes": (0, "in 1…"),
        "overflow": ("drop", '"auto" or "page" or'),
    }.items()
}
BAD |= {
    f"queues.x.{name}": bad
    for name, bad in {
        "redistribution-delay": ("soon", "a time"),
        "redistribution-filters": ("some", '"ignore" or "match"'),
        "replicate": ("some", '"all" or "configuration" or "none"'),
        "confirm-replicas": (8, "in 0…7"),
    }.items()
}
BAD |= {key.replace("link-defaults", owner): bad for key, bad in BAD.items()
        for owner in ("bridges.x", "links.x", "mta.x")
        if key.startswith("link-defaults")}  # fmt: skip


def key_of(option: Option) -> str:
    return option.key.replace(".NAME.", ".x.")


@pytest.mark.parametrize("option", OURS, ids=key_of)
def test_each_key_has_good_values_and_bad_ones(option: Option, tmp_path: Path) -> None:
    key = key_of(option)
    assert option_of(key) == option
    if key in GOOD:
        given, value = GOOD[key]
        assert option.value_of(given) == value
    base: dict[str, object] = {"acceptors.x.uri": "a", "credentials.x.password": HIDDEN}
    bad, complaint = BAD[key]
    with pytest.raises(ConfigError) as error:
        read(tmp_path, toml_of(base | {key: bad}))
    said = str(error.value)
    assert key in said
    assert complaint in said
    assert str(tmp_path / FILE) in said
    assert HIDDEN not in said


def test_defaults_are_within_their_bounds() -> None:
    for option in ALL:
        if option.default is not None:
            option.value_of(option.default)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[conectors.x]\nuri = 'a'", "did you mean"),
        ("[connectors]\nuri = 'a'", "uri stands in [connectors], not in [connectors.NAME]"),
        ("[connectors.x]\nurl = 'a'", "did you mean connectors.x.uri?"),
        ("[connectors.x]", "[connectors.x] has no uri"),
        ("[credentials.x]\nuser = 'a'", "[credentials.x] has no password"),
        ("[acceptors.x]\nroles = ['client']", "[acceptors.x] has no uri"),
        ("[acceptors.x]\nuri = 'a'", "admits nobody"),
        ("[acceptors.x]\nuri = 'a'\n[credentials.y]\npassword = 'x'\nrole = 'admin'",
         "admits nobody"),
        (WHOLE + "[credentials.more]\npassword = 'x'", "admits apps and more: say by credentials"),
        (WHOLE.replace("5000'", "5000'") + "[acceptors.y]\nuri = 'b'\ncredentials = 'app'",
         "names [credentials.app], which is not there; did you mean 'apps'?"),
        ("[link-defaults]\nheartbeat-interval = 50\nconnection-ttl = '5s'", "exclude each other"),
        ("[link-defaults]\ncheck-period = '5s'\nconnection-ttl = '9s'", "at least twice"),
        ("[link-defaults]\nheartbeat-intervall = 50",
         "did you mean link-defaults.heartbeat-interval?"),
        ("[security]\nkeyfile = 'x'", "did you mean security.key-file?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert complaint in str(error.value)
    assert HIDDEN not in str(error.value)


def test_the_documented_names_of_heartbeats(tmp_path: Path) -> None:
    beats = {
        "check-period = '5s'": (5.0, 60.0),
        "connection-ttl = '70s'": (30.0, 70.0),
        "check-period = '5s'\nconnection-ttl = '10s'": (5.0, 10.0),
        "heartbeat-interval = '1s'": (1.0, 3.0),
        "heartbeat-misses = 5": (0.2, 1.0),
    }
    for text, wanted in beats.items():
        assert read(tmp_path, f"[link-defaults]\n{text}").heartbeat == pytest.approx(wanted)


def test_several_credentials_may_use_one_acceptor(tmp_path: Path) -> None:
    more = "[credentials.more]\npassword = 'x'\n"
    text = WHOLE.replace("[credentials.apps]", "credentials = 'more'\n[credentials.apps]") + more
    assert read(tmp_path, text).acceptors["apps"].credentials == "more"
    found = read(tmp_path, WHOLE + more + "[security]\nkey-file = 'k'")
    assert found.acceptors["apps"].credentials is None, "it has the key of the file"
    assert found.key_file == tmp_path / "k"


# --- secrets --------------------------------------------------------------------------------------


def test_secrets_are_looked_up_when_keys_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = WHOLE.replace(f'"{HIDDEN}"', '{ env = "THE_PASSWORD" }')
    found = read(tmp_path, text)
    with pytest.raises(SecretRefused, match=r"credentials\.apps\.password: .*THE_PASSWORD"):
        credentials(found)
    monkeypatch.setenv("THE_PASSWORD", HIDDEN)
    made, warnings = credentials(found)
    assert not warnings
    assert made.find("apps", Role.CLIENT) is not None
    assert made.find("apps", Role.ADMIN) is None
    for hidden in (found, made, made.find("apps", Role.CLIENT)):
        assert HIDDEN not in repr(hidden)


def test_the_password_and_those_of_a_rotation_give_keys(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE + "accept-also = 'what it was before'")
    one = credentials(found)[0].find("apps", Role.CLIENT)
    assert one is not None
    assert len(one.keys) == 2


@pytest.mark.parametrize("shipped", ["", "CHANGE ME!!", "admin", "guest"])
def test_shipped_passwords_are_refused(tmp_path: Path, shipped: str) -> None:
    with pytest.raises(PasswordRefused, match=r"credentials\.apps\.password"):
        credentials(read(tmp_path, WHOLE.replace(HIDDEN, shipped)))


@pytest.mark.parametrize("weak", ["cluster_user_password", "elevenchars"])
def test_weak_passwords_are_a_warning(tmp_path: Path, weak: str) -> None:
    _, [warning] = credentials(read(tmp_path, WHOLE.replace(HIDDEN, weak)))
    assert "credentials.apps.password" in warning
    assert weak not in warning


# --- where values are from ------------------------------------------------------------------------


def by_key(folder: Path, **flags: object) -> dict[str, tuple[Any, str]]:
    place = folder / FILE
    given = {key.replace("__", "."): value for key, value in flags.items()}
    return {e.key: (e.value, e.source) for e in explained(layers(folder, given), place)}


def test_explain_says_where_each_value_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(tmp_path, WHOLE + "[ha]\nrole = 'backup'\nallow-failback = false")
    monkeypatch.setenv("SHMBROKER_HA_ALLOW_FAILBACK", "true")
    monkeypatch.setenv("SHMBROKER_LINK_DEFAULTS_CONNECT_TIMEOUT", "3s")
    monkeypatch.setenv("SHMBROKER_ACCEPTORS_APPS_SESSION_TTL", "5000")
    monkeypatch.setenv("SHMBROKER_CONNECTORS_THE_OTHER_URI", "tcp://other")
    found = by_key(tmp_path, instance__name="flagged")
    assert found["instance.name"] == ("flagged", "flag")
    assert found["ha.role"] == ("backup", str(tmp_path / FILE))
    assert found["ha.allow-failback"] == (True, "SHMBROKER_HA_ALLOW_FAILBACK")
    assert found["acceptors.apps.session-ttl"] == (5000, "SHMBROKER_ACCEPTORS_APPS_SESSION_TTL")
    assert found["connectors.the-other.uri"][0] == "tcp://other"
    assert found["store.segment"] == ("64MiB", "default")
    assert found["credentials.apps.password"] == ("***", str(tmp_path / FILE))
    config, network = load(tmp_path, {"instance.name": "flagged"})
    assert (config.name, config.role, config.allow_failback) == ("flagged", "backup", True)
    assert network.link_defaults["connect-timeout"] == 3.0
    assert network.acceptors["apps"].session_ttl == 5.0
    assert network.connectors["the-other"] == Single("other")


def test_explain_shows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = WHOLE + f"accept-also = ['{HIDDEN}', '{HIDDEN}']\n[sql]\npassword = '{HIDDEN}'\n"
    read(tmp_path, text + f"url = 'postgresql://a:{HIDDEN}@b/c'")
    monkeypatch.setenv("SHMBROKER_CREDENTIALS_APPS_PASSWORD", HIDDEN * 2)
    found = by_key(tmp_path)
    assert HIDDEN not in str(found)
    assert found["credentials.apps.password"] == ("***", "SHMBROKER_CREDENTIALS_APPS_PASSWORD")


def test_a_misspelt_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMBROKER_LONG", "1")
    monkeypatch.setenv("SHMBROKER_VHOST", "x")
    read(tmp_path, "")
    monkeypatch.setenv("SHMBROKER_HA_ROLLE", "live")
    with pytest.raises(ConfigError, match=r"SHMBROKER_HA_ROLLE, .*did you mean SHMBROKER_HA_ROLE"):
        read(tmp_path, "")


def test_what_is_created_is_read(tmp_path: Path) -> None:
    given: dict[str, object] = {
        "connectors.a.uri": "tcp://a",
        "credentials.two words.password": {"env": "X"},
        "credentials.a.b.password": {"env": "Y"},
        "link-defaults.connect-timeout": "3s",
    }
    (tmp_path / FILE).write_text(toml_of(given))
    assert layers(tmp_path).values == given
    assert set(load(tmp_path)[1].logins) == {"two words", "a.b"}
