"""[ha.pair] among the other tables, and a file that names another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError, place_of
from shmbroker.netbridge.config.config import load

PAIR = """
[ha]
policy = "pair"
[ha.pair]
vhost = "/"
credentials = "pair"
backup-peer = "b"
[credentials.pair]
password = "x"
role = "peering"
"""


def test_which_of_both_it_is_may_be_said_later(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(PAIR)
    _, network = load(tmp_path)
    assert network.pair is not None
    assert network.pair["backup-peer"].host == "b"
    load(tmp_path, {"ha.pair.is-primary": True})
    with pytest.raises(ConfigError, match="primary-peer is missing"):
        load(tmp_path, {"ha.pair.is-backup": True})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PAIR.replace('"pair"\n[ha.', '"shared-store"\n[ha.'), "needs ha.policy"),
        (PAIR.replace("[ha.pair]", 'role = "backup"\n[ha.pair]'), "ha.role does not go with"),
        (PAIR + '[instance]\nnetwork-vhost = "a"', "network-vhost is 'a', and ha.pair.vhost '/'"),
    ],
)
def test_what_does_not_go_with_it(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError, match=says):
        load(tmp_path)


def test_a_file_that_names_another_one(tmp_path: Path) -> None:
    shared, folder = tmp_path / "pair.toml", tmp_path / "one"
    folder.mkdir()
    own = f'[from]\nfile = "{shared}"\n[instance]\nname = "one"\n[ha.pair]\nis-primary = true\n'
    (folder / FILE).write_text(own)
    shared.write_text(PAIR + '[instance]\nname = "both"\nvhost = "v"\n')
    config, network = load(folder)
    assert (config.name, config.vhost, config.policy) == ("one", "v", "pair")
    assert network.pair is not None
    assert network.pair["is-primary"]
    shared.write_text(PAIR.replace("failover", "") + "[ha.pairs]\n")
    with pytest.raises(ConfigError, match=r"pair\.toml: "):
        load(folder)
    shared.unlink()
    with pytest.raises(ConfigError, match=r"there is no .*pair\.toml"):
        load(folder)
    assert place_of(folder) == shared
