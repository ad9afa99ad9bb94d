"""A file that a running broker reads again: what needs a restart stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.ipc.instance.reloading import Reloaded
from shmbroker.netbridge.config.config import Network, load
from shmbroker.netbridge.config.reload import Reloader
from tests.netbridge.config.town import TOWN

PASSWORD = "correct horse battery staple"
MEMBER = f"""
[ha]
policy = "replication"
role = "backup"
members = ["a=tcp://one:61620", "b=tcp://two:61620"]
[instance]
name = "b"
[ha.replication]
on-partition = "stop-confirming"
[acceptors.members]
uri = "tcp://*:61620"
roles = ["replica"]
[credentials.members]
password = "{PASSWORD}"
role = "replica"
{TOWN}[ha.scale-down]
connectors = ["north"]
"""
PAIR = f"""
[ha]
policy = "pair"
[ha.pair]
vhost = "/"
credentials = "pair"
is-primary = true
backup-peer = "b"
[credentials.pair]
password = "{PASSWORD}"
role = "peering"
"""


class Running:
    def __init__(self, folder: Path, text: str) -> None:
        self.file = folder / FILE
        self.file.write_text(text)
        self.config, self.network = load(folder)
        self.is_refused = False
        self.reload = Reloader(folder, {}, self.network, lambda found, _: self._taken(found))

    def _taken(self, found: Network) -> None:
        if self.is_refused:
            raise ConfigError("not that")
        self.network = found

    def reads(self, text: str) -> Reloaded:
        self.file.write_text(text)
        return self.reload(self.config)


def test_another_policy_waits_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    running = Running(tmp_path, MEMBER)
    former = running.network
    members, credentials = MEMBER.index("[ha.replication]"), MEMBER.index("[credentials.members]")
    new = MEMBER[:members] + MEMBER[credentials:]
    new = new.replace('"replication"\nrole = "backup"', '"live-only"').replace("members = [", "# ")
    found = running.reads(new.replace("two:61619", "three:61619"))
    assert found.applied == ("acceptors.members.roles", "connectors.north.uri")
    assert set(found.ignored) > {"ha.policy", "ha.role", "ha.replication.on-partition"}
    network = running.network
    assert network.replication == former.replication
    assert network.acceptors == former.acceptors
    assert network.scale_down == former.scale_down
    assert network.cluster == former.cluster
    assert network.connectors["north"].host == "three"


def test_a_table_that_is_gone_stays(tmp_path: Path) -> None:
    running = Running(tmp_path, MEMBER)
    scale_down = running.network.scale_down
    found = running.reads(MEMBER.partition("[ha.scale-down]")[0])
    assert found.ignored == ("ha.scale-down.connectors",)
    assert running.network.scale_down == scale_down
    assert scale_down is not None


def test_times_of_a_member_are_taken(tmp_path: Path) -> None:
    running = Running(tmp_path, MEMBER)
    new = '[ha.replication]\nreplica-timeout = "7s"\nvote-retries = 3\nmax-replicas = 3\n'
    found = running.reads(MEMBER.replace("[ha.replication]\n", new))
    assert found.ignored == ("ha.replication.max-replicas",)
    replication = running.network.replication
    assert replication is not None
    assert (replication.replica_timeout, replication.vote_retries) == (7.0, 3)
    assert replication.max_replicas == 1


def test_more_copies_than_it_follows_replicas_are_refused(tmp_path: Path) -> None:
    running = Running(tmp_path, MEMBER)
    new = "[ha.replication]\nmax-replicas = 2\nmin-insync = 3\n"
    with pytest.raises(ConfigError, match="min-insync is at most 2, and not 3, until a restart"):
        running.reads(MEMBER.replace("[ha.replication]\n", new))


def test_a_key_of_a_listener_that_stays_is_there(tmp_path: Path) -> None:
    running = Running(tmp_path, MEMBER)
    members, connectors = MEMBER.index("[ha.replication]"), MEMBER.index("[connectors]")
    new = MEMBER[:members] + MEMBER[connectors:]
    with pytest.raises(ConfigError, match=r"acceptors\.members\.credentials names.*a restart$"):
        running.reads(new.replace('"replication"\nrole = "backup"\nmembers', '"live-only"\n#'))


def test_of_a_pair_its_patience_is_taken(tmp_path: Path) -> None:
    running = Running(tmp_path, PAIR)
    new = PAIR.replace("is-primary", 'failover-timeout = "9s"\nis-primary').replace('"b"', '"c"')
    assert running.reads(new).ignored == ("ha.pair.backup-peer",)
    pair = running.network.pair
    assert pair is not None
    assert (pair["failover-timeout"], pair["backup-peer"].host) == (9.0, "b")
    running.reads(PAIR)
    assert "failover-timeout" not in (running.network.pair or {})


def test_what_was_refused_is_applied_by_the_next_reload(tmp_path: Path) -> None:
    running = Running(tmp_path, PAIR)
    running.is_refused = True
    with pytest.raises(ConfigError):
        running.reads(PAIR.replace(PASSWORD, "a newer password"))
    running.is_refused = False
    found = running.reads(PAIR.replace(PASSWORD, "a newer password"))
    assert found.applied == ("credentials.pair.password",)
