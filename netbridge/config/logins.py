"""The credentials of a broker with their keys, once their secrets are looked up and checked."""

from __future__ import annotations

from collections.abc import Collection

from shmbroker.netbridge.config.config import Login, Network
from shmbroker.netbridge.security import key_file, password
from shmbroker.netbridge.security.credential import Credential, Credentials, KeyPair
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role


def credentials(
    network: Network, names: Collection[str] | None = None
) -> tuple[Credentials, tuple[str, ...]]:
    """Also what is to be warned of at each start; SecretRefused, PasswordRefused or KeyRefused.

    `names`: of these alone, without files of keys; None, of all.
    """
    warnings: list[str] = []
    wanted = [each for each in network.logins.values() if names is None or each.name in names]
    found = [_credential(login, network, warnings) for login in wanted]
    if names is not None:
        return Credentials(found), tuple(warnings)
    return Credentials(found, _pair(network), _known_keys(network)), tuple(warnings)


def _pair(network: Network) -> KeyPair | None:
    return None if network.key_file is None else key_file.read(network.key_file)


def _known_keys(network: Network) -> dict[bytes, frozenset[Role]] | None:
    if network.known_keys is None:
        return None
    return {each.public: frozenset(each.roles) for each in key_file.known(network.known_keys)}


def _credential(login: Login, network: Network, warnings: list[str]) -> Credential:
    table = f"credentials.{login.name}"
    passwords = []
    for name, secret in [
        ("password", login.password), *(("accept-also", each) for each in login.accept_also)
    ]:  # fmt: skip
        key = f"{table}.{name}"
        text = secret.revealed(key, network.folder)
        password.check(key, text)
        if warning := password.warning(key, text):
            warnings.append(warning)
        passwords.append(text)
    keys = tuple(Stretched(login.user, each) for each in passwords)
    return Credential(login.name, login.user, login.roles, keys)
