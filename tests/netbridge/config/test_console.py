"""[console]: where it listens, who may log in, and what is wrong with that."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.config.console import Console
from tests.support.certificate import written

LOGINS = """
[credentials.operator]
password = "a password of some length"
role = "admin"

[credentials.apps]
password = "another one of some length"
role = "client"
"""


def read(folder: Path, console: str) -> Console | None:
    (folder / FILE).write_text(f"{LOGINS}\n{console}")
    return load(folder)[1].console


def test_without_the_table_there_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, "") is None


def test_what_may_be_said(tmp_path: Path) -> None:
    written(trustme.CA(), tmp_path)
    plain = read(tmp_path, '[console]\nlisten = "[::1]:8161"\ncredentials = ["operator"]')
    assert plain == Console("::1", 8161, ("operator",), (), None, None, False)
    assert not plain.is_secure
    secure = read(
        tmp_path,
        '[console]\nlisten = "0.0.0.0:0"\ntls-cert = "certificate"\ntls-key = "key"\n'
        'names = ["broker.example"]\nmetrics-open = true',
    )
    assert secure == Console("0.0.0.0", 0, (), ("broker.example",), tmp_path / "certificate",
                             tmp_path / "key", True)  # fmt: skip
    assert secure.is_secure


@pytest.mark.parametrize(
    ("console", "complaint"),
    [
        ("[console]\nmetrics-open = true", "has no listen"),
        ("[console]", "has no listen"),
        ('listen = "127.0.0.1"', "an address and a port"),
        ('listen = "127.0.0.1:65536"', "an address and a port"),
        ('listen = "0.0.0.0:8161"', "which others reach"),
        ('listen = "127.0.0.1:0"\ncredentials = ["nobody"]', "[credentials.nobody], which is not"),
        ('listen = "127.0.0.1:0"\ncredentials = ["apps"]', "neither the role"),
        ('listen = "127.0.0.1:0"\ntls-cert = "certificate"', "it needs both"),
        ('listen = "127.0.0.1:0"\ntls-cert = "gone"\ntls-key = "key"', "which is no file"),
        ('listen = "127.0.0.1:0"\ntls-cert = "certificate"\ntls-key = "other"', "not go together"),
        ('listen = "127.0.0.1:0"\ntls-cert = "key"\ntls-key = "certificate"', "not go together"),
        ('listen = "127.0.0.1:0"\nport = 1', "console.port"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, console: str, complaint: str) -> None:
    written(trustme.CA(), tmp_path)
    trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(tmp_path / "other")
    with pytest.raises(ConfigError) as error:
        read(tmp_path, console if console.startswith("[") else f"[console]\n{console}")
    assert complaint in str(error.value)
