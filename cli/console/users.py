"""What an admin does with users: add, change, give another password, remove.

Nobody ends his own rights by mistake: what does, is to say `confirm`, the name of the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shmbroker.cli.console.actions import Given, text
from shmbroker.cli.console.refusal import Refused
from shmbroker.ipc.base.errors import NotFound
from shmbroker.netbridge.config.users import Change, User, Users
from shmbroker.netbridge.wire.words import Role


def add(users: Users, by: str, given: Given) -> dict[str, Any]:
    login = given.get("user") or None
    if login is not None and not isinstance(login, str):
        raise Refused(400, "request", "user is text")
    return _warned(users.add(text(given, "name"), login, _change(given)))


def change(users: Users, by: str, given: Given) -> dict[str, Any]:
    """What is not given stays."""
    name, wanted = text(given, "name"), _change(given)
    if wanted == Change():
        raise Refused(400, "request", "say roles, console or password")
    user = _found(users, name)
    loses = wanted.roles is not None and Role.ADMIN.value not in wanted.roles
    if loses or wanted.logs_in is False:
        _check_self(user, by, given)
    return _warned(users.change(name, wanted))


def remove(users: Users, by: str, given: Given) -> dict[str, Any]:
    name = text(given, "name")
    _check_self(_found(users, name), by, given)
    users.remove(name)
    return {}


def _change(given: Given) -> Change:
    roles, logs_in, password = (given.get(each) for each in ("roles", "console", "password"))
    if roles is not None and not (
        isinstance(roles, list) and roles and all(isinstance(each, str) for each in roles)
    ):
        raise Refused(400, "request", 'roles is a list, as in ["viewer"]')
    if logs_in is not None and not isinstance(logs_in, bool):
        raise Refused(400, "request", "console is true or false")
    if password is not None and not isinstance(password, str):
        raise Refused(400, "request", "password is text")
    return Change(roles, logs_in, password)


def _found(users: Users, name: str) -> User:
    found = next((each for each in users.listed() if each.name == name), None)
    if found is None:
        raise NotFound(f"there is no user {name!r:.100}")
    return found


def _check_self(user: User, by: str, given: Given) -> None:
    if user.user == by and given.get("confirm") != user.name:
        raise Refused(
            409, "self", f"{user.name} is you, and would be no admin here any more: say its name "
            "in confirm, if you mean it"
        )  # fmt: skip


def _warned(warning: str | None) -> dict[str, Any]:
    return {} if warning is None else {"warning": warning}


OF_USERS: Final[dict[str, Callable[[Users, str, Given], dict[str, Any]]]] = {
    "add-user": add,
    "change-user": change,
    "remove-user": remove,
}
