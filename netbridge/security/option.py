"""The options of security: credentials, the key pair of a broker, the keys of others."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.instance.config.kind import FOLDER, SECRET, Kind, is_name
from shmbroker.ipc.instance.config.option import Option
from shmbroker.ipc.instance.config.secret import Secret, secret_of
from shmbroker.netbridge.wire.words import Role

ROLE_NAMES: Final = tuple(role.value for role in Role)


def roles_of(given: object) -> tuple[Role, ...]:
    """One role, or a list of them."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(each in ROLE_NAMES for each in names):
        raise ValueError(f"one of {', '.join(ROLE_NAMES)}, or a list of them")
    return tuple(dict.fromkeys(Role(each) for each in names))


def _user(given: object) -> str:
    if not isinstance(given, str) or not is_name(given):
        raise ValueError("a name of up to 255 bytes without a slash")
    return given


def _secrets(given: object) -> tuple[Secret, ...]:
    """One secret, or a list of them."""
    return tuple(secret_of(each) for each in (given if isinstance(given, list) else [given]))


ROLES: Final = Kind("roles", roles_of, ", ".join(f"`{each}`" for each in ROLE_NAMES))
USER: Final = Kind("name", _user)
SECRETS: Final = Kind("secrets", _secrets)

CREDENTIALS: Final = (
    Option("credentials.NAME", "user", USER, None, "Who this is; NAME if left out.",
           is_reloaded=True),
    Option("credentials.NAME", "password", SECRET, None, "What both ends know.",
           is_required=True, is_reloaded=True),
    Option("credentials.NAME", "role", ROLES, "client", "What its links may be for.",
           is_reloaded=True),
    Option("credentials.NAME", "accept-also", SECRETS, [],
           "Passwords that are accepted as well, and tried as well, during a rotation.",
           is_reloaded=True),
)  # fmt: skip
SECURITY: Final = (
    Option("security", "key-file", FOLDER, "",
           "The key pair of this broker, made by `shmbroker key create`.", is_reloaded=True),
    Option("security", "known-keys", FOLDER, "",
           "Public keys of others, with their roles, added by `shmbroker key trust`.",
           is_reloaded=True),
)  # fmt: skip
