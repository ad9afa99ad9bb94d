"""The users of a broker as `shmbroker user` changes them: in its folder, or over a link."""

from __future__ import annotations

import getpass
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from shmbroker.cli.connection import ordered_far
from shmbroker.cli.console.supervised import reloaded
from shmbroker.ipc.instance.audit import audited
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.config.users import Change, User, Users
from shmbroker.netbridge.serving.orders import LOOKS, USERS


class Changes(Protocol):
    """Each answers a warning, or None; an Error says why it is not done."""

    def listed(self) -> list[User]: ...

    def add(self, name: str, user: str | None, given: Change) -> str | None: ...

    def change(self, name: str, given: Change) -> str | None: ...

    def remove(self, name: str) -> None: ...


class Here:
    """Of the instance in a folder, whether it runs or not."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._users = folder, Users(folder, reloaded)

    def listed(self) -> list[User]:
        return self._users.listed()

    def add(self, name: str, user: str | None, given: Change) -> str | None:
        with self._audited("add", name):
            return self._users.add(name, user, given)

    def change(self, name: str, given: Change) -> str | None:
        with self._audited("change" if given.password is None else "password", name):
            return self._users.change(name, given)

    def remove(self, name: str) -> None:
        with self._audited("remove", name):
            self._users.remove(name)

    def _audited(self, verb: str, name: str) -> AbstractContextManager[None]:
        config = load(self._folder)
        log = Log(config.log, config.name)
        return audited(log, verb=f"user {verb}", name=name, user=getpass.getuser())


class Far:
    """Of a broker that serves, which has the last word on who may."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker

    def listed(self) -> list[User]:
        found = ordered_far(self._broker, LOOKS, noun=USERS)
        return [User(**{**each, "roles": tuple(each["roles"])}) for each in found]

    def add(self, name: str, user: str | None, given: Change) -> str | None:
        return self._ordered("add", name, given, login=user)

    def change(self, name: str, given: Change) -> str | None:
        return self._ordered("change", name, given)

    def remove(self, name: str) -> None:
        self._ordered("remove", name, Change())

    def _ordered(
        self, verb: str, name: str, given: Change, login: str | None = None
    ) -> str | None:
        [done] = ordered_far(
            self._broker, verb, noun=USERS, name=name, called=login, logs_in=given.logs_in,
            roles=None if given.roles is None else list(given.roles), password=given.password,
        )  # fmt: skip
        warning: str | None = done["warning"]
        return warning
