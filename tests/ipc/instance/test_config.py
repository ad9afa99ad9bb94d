"""What stands in shmbroker.toml, and what does not."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from shmbroker.ipc.instance import creation
from shmbroker.ipc.instance.config.config import (
    FILE,
    ConfigError,
    configured,
    load,
    read,
    toml_of,
)
from shmbroker.ipc.instance.config.edit import Edit
from shmbroker.ipc.instance.config.option import OPTIONS


def write(folder: Path, text: str) -> Path:
    (folder / FILE).write_text(text)
    return folder


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    config = load(write(tmp_path, ""))
    assert config.role == "live"
    assert config.allow_failback
    assert config.restart_backup
    assert config.wait_for_activation
    assert not config.failover_on_shutdown
    assert config.stall_limit == 0
    assert config.on_promote == ()
    assert config.store == tmp_path / "data"
    assert config.segment == 64 << 20


def test_what_create_writes_is_read_as_what_was_given(tmp_path: Path) -> None:
    given: dict[str, object] = {
        "instance.name": 'or"ders',
        "ha.role": "backup",
        "ha.stall-limit": "500ms",
        "ha.on-promote": ["/bin/sh", "-c", "exit 1"],
        "ha.failover-on-shutdown": True,
        "store.path": "/shared/orders",
    }
    config = load(write(tmp_path, toml_of(given)))
    assert config == configured(tmp_path, given)
    assert config.name == 'or"ders'
    assert config.on_promote == (("/bin/sh", "-c", "exit 1"),)
    assert config.stall_limit == 0.5
    assert config.store == Path("/shared/orders")


ODD_NAMES = ("orders \U0001f680", "a\x7fb", "caf\u00e9 \x01\t\"\\")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_of_any_characters_is_read_as_it_was_given(tmp_path: Path, name: str) -> None:
    given: dict[str, object] = {
        "instance.name": name,
        f"credentials.{name}.password": name,
        "ha.on-promote": [name],
    }
    creation.create(tmp_path / name, given)
    assert dict(read(tmp_path / name)) == given
    assert load(tmp_path / name).name == name


def test_a_table_of_a_name_with_other_letters_is_changed_where_it_stands(tmp_path: Path) -> None:
    edit = Edit(tmp_path, toml_of({"credentials.josé.password": "a"}))
    edit.put("credentials.josé", "password", "b")
    edit.put("credentials.josé \U0001f680", "password", "b")
    edit.put("credentials.josé \U0001f680", "password", "c")
    found = tomllib.loads(edit.text)["credentials"]
    assert found == {"josé": {"password": "b"}, "josé \U0001f680": {"password": "c"}}


def test_what_no_file_can_have_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """As the name of a folder that is no UTF-8."""
    name = os.fsdecode(b"a\xff")
    for given in ({"instance.name": name}, {"instance.queues": [name]}):
        with pytest.raises(ConfigError, match=r"a\\udcff"):
            creation.create(tmp_path / "a", dict(given))
        assert not (tmp_path / "a").exists()


def test_each_option_stands_there_with_its_default() -> None:
    text = toml_of({})
    uncommented = "".join(
        line.removeprefix("# ") if " = " in line else line for line in text.splitlines(True)
    )
    tables = tomllib.loads(uncommented)
    for option in OPTIONS:
        assert tables[option.table][option.name] == option.default


@pytest.mark.parametrize("renew", ["100ms", "1s", "333ms"])
def test_a_lease_may_be_renewed_three_times_before_it_runs_out(tmp_path: Path, renew: str) -> None:
    expiration = f"{3 * float(renew.removesuffix('ms').removesuffix('s')):g}"
    unit = "ms" if renew.endswith("ms") else "s"
    config = configured(tmp_path, {"sql.renew": renew, "sql.expiration": expiration + unit})
    assert config.sql.expiration == pytest.approx(3 * config.sql.renew)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"[instance]\nname = '{'x' * 256}'", "instance.name is text of up to 255 bytes"),
        ("[ha]\nfalover-on-shutdown = true", "did you mean ha.failover-on-shutdown?"),
        ("[ha]\nrole = 'slave'", 'ha.role is "live" or "backup" or "auto", not \'slave\''),
        ("[ha]\nallow-failback = 'maybe'", "ha.allow-failback is true or false"),
        ("[ha]\nstall-limit = '10ms'", "at least 250ms, not 10ms"),
        ("[ha]\nstall-limit = 5", "at least 250ms, not 5ms"),
        ("[ha]\nstall-limit = 'soon'", "ha.stall-limit is a time"),
        ("[ha]\npolicy = 'mirror'", 'ha.policy is "shared-store" or "replication" or'),
        ("[ha]\npolicy = 'replication'\nfailover-on-shutdown = true", "does not go with"),
        ("[ha]\nrole = 'auto'", 'only with ha.policy = "replication"'),
        ("[instance]\nvhost = 'a/b'", "instance.vhost is a name of 1 to 128 letters"),
        (f"[instance]\nvhost = '{'a' * 129}'", "instance.vhost is a name of 1 to 128 letters"),
        ("[ha]\non-promote-failure = 'ignore'", '"refuse" or "continue"'),
        ("[store]\nbindings-directory = 'x'", "one log holds bodies and bindings"),
        ("[store]\nlarge-messages-directory = 'x'", "one log holds bodies and bindings"),
        ("[store]\njournal = 7", "store.journal is a folder"),
        ("[instance]\nnetwork-vhost = 'a/b'", "instance.network-vhost is a name"),
        ("[instance]\nqueues = 'a,b'", "instance.queues is names of queues"),
        ("[instance]\nqueues = ['a', 'b/c']", "instance.queues is names of queues"),
        ("[ha]\non-promote = 'rm -rf'", "ha.on-promote is words"),
        ("[store]\nsegment = 'much'", "store.segment is a size"),
        ("[instance]\nname = ''", "instance.name is text"),
        ("[store]\nlock = 'jdbc'", 'store.lock is "file" or "sql", not \'jdbc\''),
        ("[store]\nlock = 'sql'", "sql.url does not say which database"),
        ("[sql]\nrenew = '7s'", "at most a third of sql.expiration, so that one that fails may"),
        ("[sql]\nrenew = '101ms'\nexpiration = '300ms'", "0.101s is more than a third of 0.3s"),
        ("[sql]\nrenew = '0s'", "sql.renew is at least 10ms"),
        ("[sql]\ntable = 'x; DROP TABLE y'", "sql.table is the name of a table"),
        ("[spool]\npath = 7", "spool.path is a folder"),
        ("[spool]\ninterval = '0s'", "spool.interval is more than nothing"),
        ("[spool]\nkeep = '0'", "spool.keep is more than nothing"),
        ("[sql]\npasword = 'x'", "did you mean sql.password?"),
        ("role = 'live'", "role stands outside of any table"),
        ("[ha\n", "at line 1"),
        ("\ufeff[ha]", FILE),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(write(tmp_path, text))
    assert complaint in str(error.value)
    assert str(tmp_path / FILE) in str(error.value)


def test_no_instance(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="shmbroker create"):
        load(tmp_path)


def test_the_table_has_defaults_that_it_accepts() -> None:
    for option in OPTIONS:
        option.value_of(option.default)
        json.dumps(option.default)


def test_numbers_have_the_units_of_their_kind(tmp_path: Path) -> None:
    text = "[ha]\nstall-limit = 750\nallow-failback = 'no'\nrestart-backup = 0\n"
    config = load(write(tmp_path, text + "[store]\nsegment = 1048576"))
    assert config.stall_limit == 0.75, "an integer is milliseconds"
    assert config.segment == 1 << 20, "an integer is bytes"
    assert (config.allow_failback, config.restart_backup) == (False, False)


def test_several_commands_may_have_to_agree(tmp_path: Path) -> None:
    config = load(write(tmp_path, '[ha]\non-promote = [["a", "b"], ["c"]]'))
    assert config.on_promote == (("a", "b"), ("c",))


def test_journal_and_pages_may_have_folders_of_their_own(tmp_path: Path) -> None:
    config = configured(tmp_path, {"store.journal": "j", "store.pages": "/p"})
    assert (config.journal, config.pages) == (tmp_path / "j", Path("/p"))
    assert configured(tmp_path, {}).journal is None
