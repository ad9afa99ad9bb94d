"""What the command line says of a pair, as options: which of both it is, and its port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.wire.words import Role

MADE = "pair"
"""The acceptor that --port makes."""
ROLES = [each.value for each in (Role.CLIENT, Role.PEERING, Role.VIEWER, Role.ADMIN)]
POLICY = "ha.policy"


def of_roles(is_primary: bool | None, is_backup: bool | None) -> dict[str, object]:
    """The command line wins: who is said to be one is not the other, unless that is said, too."""
    found: dict[str, object] = {}
    if is_primary is not None:
        found["ha.pair.is-primary"] = is_primary
    if is_backup is not None:
        found["ha.pair.is-backup"] = is_backup
    if is_primary:
        found.setdefault("ha.pair.is-backup", False)
    if is_backup:
        found.setdefault("ha.pair.is-primary", False)
    return found


def of_port(given: Mapping[str, object], port: int) -> dict[str, object]:
    """`given`: what is configured, by key.  InvalidArgument if there are several acceptors."""
    names = sorted({
        key.rpartition(".")[0].removeprefix("acceptors.")
        for key in given
        if key.startswith("acceptors.")
    })  # fmt: skip
    if len(names) > 1:
        raise InvalidArgument(
            f"--port is for the only acceptor, and there are {', '.join(names)}: set "
            f"acceptors.{names[0]}.uri"
        )
    if names:
        key = f"acceptors.{names[0]}.uri"
        return {key: str(replace(single(str(given.get(key, "*"))), port=port))}
    table = f"acceptors.{MADE}"
    found: dict[str, object] = {f"{table}.uri": f"tcp://*:{port}", f"{table}.roles": ROLES}
    whose = [name for name, roles in _logins(given).items() if Role.CLIENT.value in roles]
    if len(whose) == 1 and not given.get("security.key-file"):
        found[f"{table}.credentials"] = whose[0]
    return found


def warning(given: Mapping[str, object], port: int) -> str:
    """Why the other one would not find it; nothing if it would."""
    name = "primary-peer" if given.get("ha.pair.is-primary") else "backup-peer"
    own = given.get(f"ha.pair.{name}")
    if not isinstance(own, str) or single(own).port == port:
        return ""
    return (
        f"--port is {port}, and ha.pair.{name} has port {single(own).port}: that is where "
        "applications and the other one of the pair look for this broker"
    )


def _logins(given: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key in given:
        table, _, name = key.rpartition(".")
        if table.startswith("credentials.") and name == "password":
            roles = given.get(f"{table}.role", Role.CLIENT.value)
            named = roles if isinstance(roles, list) else [roles]
            found[table.removeprefix("credentials.")] = tuple(map(str, named))
    return found
