"""Files of keys, and which passwords are refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.secret import SecretRefused
from shmbroker.netbridge.security import key_file, password
from shmbroker.netbridge.security.key_file import KeyRefused, KnownKey
from shmbroker.netbridge.wire.words import Role


def test_a_key_pair_is_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    made = key_file.create(path)
    assert key_file.read(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert made.secret.hex() not in repr(made)
    with pytest.raises(KeyRefused, match="is there already"):
        key_file.create(path)


@pytest.mark.parametrize("content", ["", "x" * 64, "ab" * 31, "AB" * 32 + "00"])
def test_what_is_no_key_is_not_shown(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(KeyRefused, match="holds no key") as error:
        key_file.read(path)
    assert not content or content not in str(error.value)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key_file.create(path)
    path.chmod(0o644)
    with pytest.raises(SecretRefused, match="chmod 600"):
        key_file.read(path)


def test_known_keys_have_roles(tmp_path: Path) -> None:
    path = tmp_path / "known"
    assert key_file.known(path) == ()
    a = KnownKey(b"a" * 32, (Role.CLIENT, Role.ADMIN), "the one at the window")
    b = KnownKey(b"b" * 32, (Role.REPLICA,), "")
    key_file.trust(path, a)
    key_file.trust(path, b)
    assert key_file.known(path) == (a, b)
    less = KnownKey(a.public, (Role.VIEWER,), "less")
    key_file.trust(path, less)
    assert key_file.known(path) == (b, less)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("ab", "line 2: a public key has 64"), ("ab" * 32 + " boss x", "line 2: one of client"),
     ("zz" * 32 + " client", "line 2: a public key has 64")],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "known"
    path.write_text(f"# others\n{line}\n")
    path.chmod(0o600)
    with pytest.raises(KeyRefused, match=complaint):
        key_file.known(path)


@pytest.mark.parametrize("given", ["", "CHANGE ME!!", "admin", "guest"])
def test_passwords_that_are_refused(given: str) -> None:
    with pytest.raises(password.PasswordRefused, match=r"credentials\.x\.password") as error:
        password.check("credentials.x.password", given)
    assert not given or given not in str(error.value)


@pytest.mark.parametrize("given", ["cluster_user_password", "short", "elevenchars"])
def test_passwords_that_are_warned_of(given: str) -> None:
    password.check("key", given)
    warning = password.warning("key", given)
    assert warning is not None
    assert given not in warning
    assert password.warning("key", "twelve-chars") is None
