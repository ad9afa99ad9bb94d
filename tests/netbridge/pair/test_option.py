"""[ha.pair]: what is required, and what does not go together."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.pair.option import PAIR, Refused, pair

LOGINS = {"site"}


def given(**values: object) -> dict[str, Any]:
    named = {"vhost": "/", "credentials": "site", "backup-peer": "b", "is-primary": True}
    named |= {name.replace("_", "-"): value for name, value in values.items()}
    options = {each.name: each for each in PAIR}
    return {
        name: options[name].value_of(value) for name, value in named.items() if value is not None
    }


def test_two_files() -> None:
    primary = pair(given(), LOGINS)
    assert primary.is_primary
    assert (primary.own, primary.other.peer) == (None, "b:61616")
    backup = pair(given(backup_peer=None, primary_peer="a:1", is_primary=None, is_backup=1), LOGINS)
    assert not backup.is_primary
    assert backup.other.peer == "a:1"
    assert (backup.failover_timeout, backup.on_conflict) == (5.0, "stop-both")


def test_one_file() -> None:
    both = given(primary_peer="a:1", backup_peer="a:2")
    assert pair(both, LOGINS).other.port == 2
    found = pair(both | {"is-primary": False, "is-backup": True}, LOGINS)
    assert (found.own and found.own.port, found.other.port) == (2, 1)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"vhost": None}, "ha.pair.vhost is missing"),
        ({"credentials": None}, "ha.pair.credentials is missing"),
        ({"credentials": "other"}, r"\[credentials.other\].*there are site"),
        ({"is_primary": None}, "is-primary and ha.pair.is-backup: neither"),
        ({"is_backup": 1}, "is-primary and ha.pair.is-backup: both"),
        ({"backup_peer": None}, "ha.pair.backup-peer is missing"),
        ({"is_primary": None, "is_backup": True}, "ha.pair.primary-peer is missing"),
    ],
)
def test_what_does_not_go(values: dict[str, object], says: str) -> None:
    with pytest.raises(Refused, match=says):
        pair(given(**values), LOGINS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("failover-timeout", "999ms"),
        ("failover-timeout", "61s"),
        ("accept-when-pending", "backup"),
        ("on-conflict", "none"),
        ("primary-peer", "tcp://*:1"),
        ("vhost", "a/b"),
    ],
)
def test_out_of_bounds(name: str, value: object) -> None:
    [option] = [each for each in PAIR if each.name == name]
    with pytest.raises(ValueError, match=r"\w"):
        option.value_of(value)
