"""Secrets of a configuration: where they may stand, and that they show themselves nowhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from shmbroker.ipc.instance.config import masking
from shmbroker.ipc.instance.config.config import FILE, ConfigError, configured, load, toml_of
from shmbroker.ipc.instance.config.secret import SecretRefused, secret_of

HIDDEN = "hunter2 and ünicode"


def revealed(given: object, folder: Path) -> str:
    return secret_of(given).revealed("sql.password", folder)


def masked(folder: Path, secret: str = HIDDEN) -> dict[str, str]:
    return {"masked": masking.masked(secret, masking.made_key(folder / masking.FILE))}


def test_it_may_be_plain(tmp_path: Path) -> None:
    assert revealed(HIDDEN, tmp_path) == HIDDEN


def test_it_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_SECRET", HIDDEN)
    assert revealed({"env": "THE_SECRET"}, tmp_path) == HIDDEN
    monkeypatch.delenv("THE_SECRET")
    with pytest.raises(SecretRefused, match=r"sql\.password: the environment has no THE_SECRET"):
        revealed({"env": "THE_SECRET"}, tmp_path)


def test_it_may_come_from_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(f"{HIDDEN}\n")
    for mode in (0o600, 0o400, 0o440):
        path.chmod(mode)
        assert revealed({"file": str(path)}, tmp_path) == HIDDEN
        assert revealed({"file": "secret"}, tmp_path) == HIDDEN
    for mode in (0o644, 0o604, 0o602, 0o660):
        path.chmod(mode)
        with pytest.raises(SecretRefused, match="chmod 600") as error:
            revealed({"file": str(path)}, tmp_path)
        assert HIDDEN not in str(error.value)
    path.unlink()
    with pytest.raises(SecretRefused, match="No such file"):
        revealed({"file": str(path)}, tmp_path)
    path.write_bytes(b"\xff\xfe")
    path.chmod(0o600)
    with pytest.raises(SecretRefused, match="it is no text"):
        revealed({"file": str(path)}, tmp_path)


@pytest.mark.parametrize("secret", [HIDDEN, "x", "", "y" * 1000])
def test_it_may_be_masked(tmp_path: Path, secret: str) -> None:
    given = masked(tmp_path, secret)
    assert revealed(given, tmp_path) == secret
    assert secret not in given["masked"] or len(secret) < 2
    assert given != masked(tmp_path, secret), "the same secret is masked in another way each time"
    assert stat.S_IMODE((tmp_path / masking.FILE).stat().st_mode) == 0o600


def test_what_is_masked_means_nothing_without_its_key(tmp_path: Path) -> None:
    given = masked(tmp_path)
    (tmp_path / masking.FILE).unlink()
    with pytest.raises(SecretRefused, match="No such file"):
        revealed(given, tmp_path)
    masking.made_key(tmp_path / masking.FILE)
    with pytest.raises(SecretRefused, match="masked with another key"):
        revealed(given, tmp_path)
    (tmp_path / masking.FILE).write_text("no key")
    with pytest.raises(SecretRefused, match="holds no key"):
        revealed(given, tmp_path)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    given = masked(tmp_path)
    (tmp_path / masking.FILE).chmod(0o644)
    with pytest.raises(SecretRefused, match="chmod 600"):
        revealed(given, tmp_path)


@pytest.mark.parametrize("text", ["", "a", "§", "AAAA", "A" * 43, "A" * 44, "A" * 80])
def test_what_was_not_masked_is_refused(tmp_path: Path, text: str) -> None:
    key = masking.made_key(tmp_path / masking.FILE)
    with pytest.raises(ValueError, match="mask"):
        masking.unmasked(text, key)


def test_a_masked_secret_that_was_changed_is_refused(tmp_path: Path) -> None:
    key = masking.made_key(tmp_path / masking.FILE)
    good = masking.masked(HIDDEN, key)
    for at in range(0, len(good) - 4, 7):
        changed = good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1 :]
        with pytest.raises(ValueError, match="masked with another key"):
            masking.unmasked(changed, key)


@pytest.mark.parametrize(
    "given",
    [5, [HIDDEN], {}, {"env": ""}, {"env": 5}, {"vault": HIDDEN}, {"env": "A", "file": "B"}],
)
def test_what_is_no_secret_is_not_shown(tmp_path: Path, given: object) -> None:
    with pytest.raises(ConfigError, match=r"sql\.password is text, \{ env") as error:
        configured(tmp_path, {"sql.password": given})
    assert HIDDEN not in str(error.value)


def test_a_configuration_does_not_show_it(tmp_path: Path) -> None:
    config = configured(
        tmp_path, {"sql.password": HIDDEN, "sql.url": f"postgresql://b:{HIDDEN}@h/d"}
    )
    assert HIDDEN not in repr(config)
    assert HIDDEN not in str(config.sql.password)


def test_a_configuration_is_read_without_looking_it_up(tmp_path: Path) -> None:
    """Who asks for the status of an instance need not know its secrets."""
    given: dict[str, object] = {
        "store.lock": "sql",
        "sql.url": {"env": "NOT_THERE"},
        "sql.password": {"file": "/not/there"},
    }
    (tmp_path / FILE).write_text(toml_of(given))
    assert "NOT_THERE" not in os.environ
    assert load(tmp_path) == configured(tmp_path, given)
