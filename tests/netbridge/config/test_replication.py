"""[ha.replication]: what is read, what is refused, and the file that does not load, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.netbridge.config.config import Network, load

POLICY = '[ha]\npolicy = "replication"\n'
WITNESS = 'witnesses = ["tcp://w:61617"]\n'

MISSING = """\
ha.replication.on-partition is missing.  This pair has no witness and no quorum: when its
members do not reach each other, neither can know whether the other is dead.  Say what they do then:
  on-partition = "stop-confirming"   There is never more than one live.  A live that loses its replica, by crash or network, confirms
                                     nothing more until it is back, or `shmbroker ha continue`; a backup takes over only after a
                                     graceful stop, if the death is proven (same host), or by `shmbroker ha activate --force`.
  on-partition = "continue-alone"    There is always one that serves.  Each goes on alone; if it was the network and not a death, both
                                     serve, what they took in differs, and a person has to merge it.
Or give it a witness: witnesses = ["tcp://HOST:61617"]  (shmbroker witness run)"""  # noqa: E501 - as people see it


def loaded(folder: Path, text: str) -> Network:
    (folder / FILE).write_text(text)
    return load(folder)[1]


def test_a_file_without_on_partition_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, POLICY)
    assert str(error.value) == f"{tmp_path / FILE}: {MISSING}"


@pytest.mark.parametrize("choice", ["stop-confirming", "continue-alone"])
def test_both_choices_load(tmp_path: Path, choice: str) -> None:
    network = loaded(tmp_path, f'{POLICY}[ha.replication]\non-partition = "{choice}"\n')
    assert network.replication is not None
    assert network.replication.on_partition == choice
    assert not network.replication.vote_on_replication_failure


def test_defaults_with_a_witness(tmp_path: Path) -> None:
    found = loaded(tmp_path, f"{POLICY}[ha.replication]\n{WITNESS}").replication
    assert found is not None
    assert found.can_ask
    assert found.vote_on_replication_failure
    assert found.lease == pytest.approx(0.6)
    assert (found.vote_retries, found.vote_retry_wait, found.quorum_vote_wait) == (12, 5.0, 30.0)
    assert (found.max_replicas, found.min_insync, found.replica_ack) == (1, 1, "received")
    assert (found.replica_timeout, found.handover_timeout, found.backup_timeout) == (1.0, 60.0, 0.0)


def test_a_person_decides_so_on_partition_is_not_asked_for(tmp_path: Path) -> None:
    found = loaded(tmp_path, f'{POLICY}[ha.replication]\nactivation = "command"\n').replication
    assert found is not None
    assert found.on_partition is None


def test_another_policy_has_none(tmp_path: Path) -> None:
    assert loaded(tmp_path, "").replication is None


def test_a_lease_may_be_off(tmp_path: Path) -> None:
    found = loaded(tmp_path, f"{POLICY}[ha.replication]\n{WITNESS}lease = 0\n").replication
    assert found is not None
    assert found.lease == 0


def test_members_have_names_and_uris(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(
        '[ha]\npolicy = "replication"\nrole = "auto"\n'
        'members = ["a=tcp://one:61616", "b=tcp://two:61616"]\n'
        f"[ha.replication]\n{WITNESS}"
    )
    config, _ = load(tmp_path)
    assert config.members == (("a", "tcp://one:61616"), ("b", "tcp://two:61616"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (WITNESS + 'on-partition = "continue-alone"', "on-partition is for a pair with nobody"),
        ("vote-on-replication-failure = true", "is true, and there is nobody to ask"),
        (WITNESS + 'lock-manager = "zookeeper"', "takes the place of witnesses: name one of both"),
        ('witnesses = ["tcp://a", "tcp://b"]', "witnesses is 1, 3 or 5 uris; 2 may split evenly"),
        (WITNESS + "lease = 50", "lease is 0s (off) or in 100ms…60s, not 50"),
        (WITNESS + 'lease = "61s"', "lease is 0s (off) or in 100ms…60s"),
        (WITNESS + "max-replicas = 8", "max-replicas is in 1…7, not 8"),
        (WITNESS + "min-insync = 3", "min-insync is at most max-replicas + 1, that is 2, not 3"),
        (WITNESS + 'replica-ack = "memory"', 'replica-ack is "received" or "disk", not'),
        (WITNESS + 'on-lost-vote = "stop"', 'on-lost-vote is "shutdown" or "demote"'),
        (WITNESS + "vote-retries = 'x'", "ha.replication.vote-retries is"),
        (WITNESS + "vote-retry = 1", "did you mean ha.replication.vote-retries?"),
        (WITNESS + 'cluster-name = "east"', "names [cluster.east], which is not there"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, f"{POLICY}[ha.replication]\n{text}\n")
    assert complaint in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / FILE}: ")


def test_the_table_needs_the_policy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'needs ha\.policy = "replication"'):
        loaded(tmp_path, f"[ha.replication]\n{WITNESS}")


def test_auto_needs_members(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ha\.members does not say who is preferred"):
        loaded(tmp_path, f'{POLICY}role = "auto"\n[ha.replication]\n{WITNESS}')


def test_the_environment_may_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHMBROKER_HA_REPLICATION_ON_PARTITION", "stop-confirming")
    found = loaded(tmp_path, POLICY).replication
    assert found is not None
    assert found.on_partition == "stop-confirming"
