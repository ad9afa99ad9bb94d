"""[ha.colocated], and the configuration of backups that run for others, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError, Given, configured
from shmbroker.netbridge.cluster.option import Refused
from shmbroker.netbridge.cluster.said import Requests
from shmbroker.netbridge.config.colocated import Colocated
from shmbroker.netbridge.config.config import load, network
from shmbroker.netbridge.config.hosted import Host, given_of
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.replicated.options import checked, group_name

CLUSTER = """
[instance]
name = "east"
vhost = "east"
[connectors]
east.uri = "tcp://one:61619"
north.uri = "tcp://two:61619"
[acceptors.town]
uri = "tcp://*:61619"
roles = ["cluster"]
[acceptors.apps]
uri = "tcp://*"
[credentials.apps]
password = { file = "secrets/apps" }
role = "client"
[cluster.town]
connector = "east"
user = "town"
password = "correct horse battery"
static-connectors = ["north"]
"""
TABLE = '[ha.colocated]\nexcludes = ["north"]\n'
GOOD = CLUSTER + TABLE
DRAINS = "[ha.colocated.backup.scale-down]\n"
WANTED = Requests(1, 0, "shared-store", "", "north", "north", "", "/shared/north", "", "", "")
REPLICATED = """
[acceptors.members]
uri = "tcp://*:61620"
roles = ["replica"]
[credentials.members]
password = "battery staple horse"
role = "replica"
[ha]
policy = "replication"
members = ["east=tcp://one:61620"]
[ha.replication]
vote-on-replication-failure = true
"""


def loaded(folder: Path, text: str) -> Colocated | None:
    (folder / FILE).write_text(text)
    return load(folder)[1].colocated


def hosted(folder: Path, text: str, number: int = 1, wanted: Requests = WANTED) -> Given:
    found = loaded(folder, text)
    assert found is not None
    host = Host(folder, single("tcp://one:61619"), b"\x01\x23\x45\x67" * 4)
    return given_of(found, host, number, wanted)


def test_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD)
    assert found is not None
    assert (found.requests, found.max_backups, found.retries) == (False, 1, None)
    assert (found.interval, found.offset, found.excludes) == (5.0, 100, ("north",))
    assert loaded(tmp_path, CLUSTER) is None


def test_what_is_said(tmp_path: Path) -> None:
    more = """
request-backup = true
max-backups = 64
backup-request-retries = 3
backup-request-retry-interval = "1s"
backup-port-offset = 10
[ha.colocated.live]
failover-on-shutdown = true
[ha.colocated.backup]
on-promote = ["fence"]
"""
    found = loaded(tmp_path, GOOD + more)
    assert found is not None
    assert (found.requests, found.max_backups, found.retries) == (True, 64, 3)
    assert (found.interval, found.offset) == (1.0, 10)
    assert dict(found.backup) == {"ha.on-promote": ["fence"]}
    assert load(tmp_path)[0].failover_on_shutdown is True


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD + "max-backups = 65", "0…64"),
        (GOOD + "backup-request-retries = -2", "-1: no limit"),
        (GOOD + "backup-port-offset = 0", "1…65535"),
        (GOOD + "max-backup = 2", "did you mean ha.colocated.max-backups?"),
        (GOOD.replace('["north"]\n', '["south"]\n').replace('["south"]', '["north"]', 1),
         "[connectors.south], which is not there"),
        (CLUSTER + "[ha.colocated]\nmax-backups = 1", "excludes does not name north"),
        (GOOD + "[ha.colocated.live]\nrole = 'backup'", "role is none that may stand here"),
        (GOOD + "[ha.colocated.live]\nallow-failbak = true", "did you mean allow-failback?"),
        (GOOD + "[ha.colocated.live]\nallow-failback = 7", "allow-failback is"),
        (GOOD + "[ha.colocated.backup]\nrestart-backup = true", "false for hosted backups"),
        (GOOD + DRAINS + 'to = ["east"]', "in which scale-down has no to"),
        (GOOD + DRAINS + 'connector = ["east"]', "did you mean connectors?"),
        (GOOD + DRAINS + 'connectors = "east"', 'scale-down.connectors is names of'),
        (GOOD + DRAINS + 'connectors = ["south"]', "[connectors.south], which is not there"),
        (GOOD + DRAINS + 'timeout = "1s"', "does not say to whom"),
        (GOOD.replace('"tcp://two:61619"', '"tcp://two:61619"\nsouth.uri = "tcp://three"')
         + DRAINS + 'connectors = ["south"]', "excludes does not name south"),
        (GOOD.replace('["north"]\n[', '["north"]\nmax-hops = 0\n[', 1) + DRAINS
         + 'connectors = ["north"]', "whose max-hops is not 0"),
        (GOOD + "[ha.colocated.backup]\nscale-down = 7", "scale-down is a table with options"),
        (GOOD + "[ha.colocated.live.scale-down]\nconnectors = ['north']",
         "scale-down is none that may stand here"),
        (GOOD + "live = 7", "a table with options of [ha] and [ha.replication]"),
        (GOOD + '[ha]\npolicy = "live-only"', 'needs ha.policy = "shared-store" or'),
        (GOOD + "request-backup = true" + REPLICATED.replace('"east=', '"east2='),
         "request-backup needs ha.members with this broker alone"),
        (GOOD + "request-backup = true" + REPLICATED.replace("members = [", "on-promote = ["),
         "request-backup needs ha.members with this broker alone"),
        (GOOD + '[ha]\nrole = "backup"', 'is for a live, and ha.role is "backup"'),
        ("[ha.colocated]\nmax-backups = 1", "needs a [cluster.NAME]"),
        (GOOD + "[ha.colocated.live]\ngroup-name = 'blue'", 'needs ha.policy = "replication"'),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, text)
    assert complaint in str(refused.value)


def test_without_backups_of_others_every_connector_keeps_its_port(tmp_path: Path) -> None:
    assert loaded(tmp_path, CLUSTER + "[ha.colocated]\nmax-backups = 0") is not None


def test_its_own_connector_may_stand_in_the_list(tmp_path: Path) -> None:
    assert loaded(tmp_path, GOOD.replace('= ["north"]\n[ha', '= ["north", "east"]\n[ha'))


def test_a_hosted_backup_inherits_and_has_ports_of_its_own(tmp_path: Path) -> None:
    given = hosted(tmp_path, GOOD, 2)
    assert given["acceptors.town.uri"] == "tcp://*:61819"
    assert given["acceptors.apps.uri"] == "tcp://*:61816"
    assert given["connectors.east.uri"] == "tcp://one:61819"
    assert given["connectors.north.uri"] == "tcp://two:61619"
    assert given["connectors.colocated-host.uri"] == "tcp://one:61619"
    assert given["cluster.town.static-connectors"] == ["north", "colocated-host"]
    assert given["credentials.apps.password"] == {"file": str(tmp_path / "secrets/apps")}
    made = configured(tmp_path / "there", given)
    assert (made.name, made.vhost, made.role) == ("colocated_backup_2", "north", "backup")
    assert (str(made.store), made.restart_backup) == ("/shared/north", False)
    assert made.log == tmp_path / "there" / "log" / "shmbroker.log"
    found = network(tmp_path / "there", given)
    assert found.colocated is None
    assert found.cluster is not None


def test_a_hosted_backup_has_a_console_of_its_own(tmp_path: Path) -> None:
    console = """[console]
listen = "127.0.0.1:8161"
others = ["west=http://two:8161/"]
"""
    given = hosted(tmp_path, GOOD + console, 2)
    found = network(tmp_path / "there", given).console
    assert found is not None
    assert (found.host, found.port, found.others) == ("127.0.0.1", 8361, ())
    for listens, there in (("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:8161", "[::1]:8261")):
        given = hosted(tmp_path, GOOD + console.replace("127.0.0.1:8161", listens))
        assert given["console.listen"] == there
    with pytest.raises(Refused, match=r"port 65500 \+ 100 is above 65535"):
        hosted(tmp_path, GOOD + console.replace("8161", "65500"))


def test_options_of_the_live_are_not_those_of_its_guests(tmp_path: Path) -> None:
    more = """
[ha.colocated.live]
failover-on-shutdown = true
allow-failback = false
[ha.colocated.backup]
stall-limit = "1s"
"""
    given = hosted(tmp_path, GOOD + more)
    made = configured(tmp_path / "there", given)
    assert (made.failover_on_shutdown, made.allow_failback, made.stall_limit) == (False, True, 1.0)


def test_who_runs_it_may_be_who_gets_what_its_live_had(tmp_path: Path) -> None:
    more = DRAINS + 'connectors = ["north", "east"]\ncommit-interval = 100'
    given = hosted(tmp_path, GOOD + more)
    found = network(tmp_path / "there", given).scale_down
    assert found is not None
    assert found.connectors == ("tcp://two:61619", "tcp://one:61619")
    assert found.commit_interval == 100
    given = hosted(tmp_path, GOOD + DRAINS + 'connectors = ["north"]')
    assert given["ha.scale-down.connectors"] == ["north"]
    loaded(tmp_path, GOOD + REPLICATED + DRAINS + 'connectors = ["east"]')


def test_a_port_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"port 61619 \+ 60000 is above 65535"):
        hosted(tmp_path, GOOD + "backup-port-offset = 60000")


def test_a_member_of_a_replicated_node_has_a_name_and_data_of_its_own(tmp_path: Path) -> None:
    more = """request-backup = true
[ha.colocated.live]
group-name = "blue"
[ha.colocated.backup]
retry-replication-wait = "1s"
"""
    wanted = Requests(
        1, 0, "replication", "blue", "north", "north", "", "", "", "", "tcp://two:61620"
    )
    given = hosted(tmp_path, GOOD + more + REPLICATED, 1, wanted)
    made = configured(tmp_path / "there", given)
    assert (made.name, made.vhost) == ("colocated_backup_1@01234567", "north-at-01234567")
    assert made.store == tmp_path / "data-colocated_backup_1"
    assert made.members == (
        ("north", "tcp://two:61620"),
        ("colocated_backup_1@01234567", "tcp://one:61720"),
    )
    found = network(tmp_path / "there", given).replication
    assert found is not None
    assert (found.group_name, found.retry_replication_wait) == ("blue@north", 1.0)
    whole = load(tmp_path)
    assert whole[1].replication is not None
    assert group_name(*whole) == "blue@east"
    assert checked(*whole)
