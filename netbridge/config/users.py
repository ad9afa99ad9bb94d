"""Users: [credentials.NAME] of shmbroker.toml, listed and changed.

A change is written, read as the broker reads it, and taken back if that refuses it.  A password
stands in DIR/NAME.password, as `shmbroker create` writes it, and is never shown.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import InvalidArgument, NotFound, SystemRefused
from shmbroker.ipc.instance import reloading, status
from shmbroker.ipc.instance.config.config import FILE, read_file
from shmbroker.ipc.instance.config.edit import Edit
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import write_text
from shmbroker.netbridge.config.config import Login, Network, load
from shmbroker.netbridge.config.template import password_of
from shmbroker.netbridge.security import password as passwords
from shmbroker.netbridge.security.option import roles_of
from shmbroker.netbridge.wire.words import Role

LOCK: Final = "users.lock"
OF_CONSOLE: Final = "console"
LISTED: Final = "credentials"
"""In [console]: who may log in there."""
LOOKS: Final = frozenset({Role.ADMIN, Role.VIEWER})
NAME_MAX: Final = 64
RELOAD_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class User:
    name: str
    """Of [credentials.NAME]."""
    user: str
    """By which it logs in."""
    roles: tuple[str, ...]
    logs_in: bool
    """At the console."""
    kept: str
    """Where its password is: file, env, masked, plain."""
    also: int
    """So many other passwords are accepted as well."""

    @property
    def fields(self) -> dict[str, object]:
        return {
            "name": self.name,
            "user": self.user,
            "roles": list(self.roles),
            "console": self.logs_in,
            "password": self.kept,
            "accept_also": self.also,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """None: as it was."""

    roles: Sequence[str] | None = None
    logs_in: bool | None = None
    """At the console."""
    password: str | None = field(default=None, repr=False)


class LastAdmin(InvalidArgument):
    """Nobody could change anything at the console any more."""


class NoAnswer(SystemRefused):
    """The broker may still read the files, late."""


class Users:
    """Of the instance in a folder, whether it runs or not.  From any thread and process."""

    def __init__(self, folder: Path, reload: Callable[[Path], None]) -> None:
        """`reload`: an Error says why the broker does not take a change, which is taken back."""
        self.folder, self._reload = folder, reload

    def listed(self) -> list[User]:
        network = load(self.folder)[1]
        return [_user(each, network) for each in network.logins.values()]

    def add(self, name: str, user: str | None, given: Change) -> str | None:
        """A warning of its password.  InvalidArgument; ConfigError: the rest does not allow it."""
        if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{NAME_MAX}}}", name, re.A):
            raise InvalidArgument(
                f"{name!r:.100} names no user: 1 to {NAME_MAX} letters, digits, '-' and '_'"
            )
        if given.password is None or not given.roles:
            raise InvalidArgument(f"{name} needs a password and a role")
        with self._changing() as (network, edit, files):
            if name in network.logins:
                raise InvalidArgument(f"there is a user {name} already")
            place = self.folder / password_of(name)
            if place.exists():
                raise InvalidArgument(f"{place} is there already: move it away, or name another")
            table, roles = f"credentials.{name}", _roles(given.roles)
            edit.put(table, "password", {"file": place.name})
            edit.put(table, "role", [each.value for each in roles])
            if user and user != name:
                edit.put(table, "user", user)
            files[place] = _good(name, given.password)
            _keep_keys(network, edit, roles)
            _let_in(network, edit, name, wanted=_may_log_in(network, roles, given.logs_in))
        return passwords.warning(name, given.password)

    def change(self, name: str, given: Change) -> str | None:
        """The same."""
        with self._changing() as (network, edit, files):
            login = _found(network, name)
            roles = login.roles
            if given.roles is not None:
                roles = _roles(given.roles)
                edit.put(f"credentials.{name}", "role", [each.value for each in roles])
                _keep_keys(network, edit, roles)
            was = network.console is not None and name in network.console.credentials
            wanted = given.logs_in
            if wanted is None:  # who may look there no more does not log in either
                wanted = was and bool(LOOKS & set(roles))
            _let_in(network, edit, name, wanted=_may_log_in(network, roles, wanted))
            if given.password is not None:
                place = self._place(login)
                if login.password.kind != "file":
                    edit.put(f"credentials.{name}", "password", {"file": place.name})
                files[place] = _good(name, given.password)
        return None if given.password is None else passwords.warning(name, given.password)

    def remove(self, name: str) -> None:
        with self._changing() as (network, edit, files):
            _found(network, name)
            said = read_file(self.folder / FILE)
            own = f"credentials.{name}."
            if not any(key.startswith(own) for key in said):
                raise InvalidArgument(
                    f"[credentials.{name}] is not in {self.folder / FILE}: remove it where it is"
                )
            _let_in(network, edit, name, wanted=False)
            edit.drop_table(f"credentials.{name}")
            place = self.folder / password_of(name)
            whose = [key for key, each in said.items() if each == {"file": place.name}]
            if whose and all(key.startswith(own) for key in whose):
                files[place] = None

    def _place(self, login: Login) -> Path:
        """The file of its password, if it is ours to write."""
        secret = login.password
        if secret.kind == "env":
            raise InvalidArgument(
                f"the password of {login.name} is {secret.content} of the environment: change it "
                "there, and shmbroker config reload"
            )
        if secret.kind != "file":
            place = self.folder / password_of(login.name)
            if {"file": place.name} in read_file(self.folder / FILE).values():
                raise InvalidArgument(
                    f"{place} has another password of {self.folder / FILE}: name another file there"
                )
            return place
        place = self.folder / secret.content
        if place.parent != self.folder:
            raise InvalidArgument(
                f"the password of {login.name} is in {place}: change it there, and shmbroker "
                "config reload"
            )
        return place

    @contextmanager
    def _changing(self) -> Iterator[tuple[Network, Edit, dict[Path, str | None]]]:
        """One change at a time.  What is put into the dictionary is written, or removed.  All of
        it is taken back if the configuration is wrong then, or has no admin."""
        with _locked(self.folder / RUN / LOCK):
            place = self.folder / FILE
            before = place.read_text(encoding="utf-8")
            network, edit = load(self.folder)[1], Edit(place, before)
            files: dict[Path, str | None] = {}
            yield network, edit, files
            former = {each: _content(each) for each in files}
            written = {each: text for each, text in files.items() if text is not None}
            try:
                _write(written)
                if edit.text != before:
                    _write({place: edit.text})
                _check_admins(network, load(self.folder)[1])
                self._reload(self.folder)
            except BaseException as error:
                _write({each: former[each] for each in written})  # the disk may be full by now
                if edit.text != before:
                    _write({place: before})
                if isinstance(error, NoAnswer):
                    with suppress(status.NotRunning):  # it may have read what was taken back
                        reloading.asked(self.folder, 0.0)
                raise
            _write({each: None for each, text in files.items() if text is None})


def reload(folder: Path) -> None:
    """Of the broker in a folder, if it runs.  An Error says why it does not take the change.

    One that is starting has read what was there before, and hears of this as soon as it can.
    """
    found = status.begun(folder, RELOAD_SECONDS)
    if found is not None and found.process is None:
        return
    answer = None if found is None else reloading.asked(folder, RELOAD_SECONDS)
    if answer is None:
        raise NoAnswer(f"the broker in {folder} does not answer: nothing was changed")
    if why := answer.get("why"):
        raise InvalidArgument(f"nothing was changed: {why}")


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    trust.check_folder(place.parent)  # its broker could not read what we write
    trust.make_folder(place.parent)
    lock = trust.opened(place, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _content(place: Path) -> str | None:
    with suppress(FileNotFoundError):
        return place.read_text(encoding="utf-8")
    return None


def _write(files: Mapping[Path, str | None]) -> None:
    for place, text in files.items():
        if text is None:
            place.unlink(missing_ok=True)
        else:
            write_text(place, text, synced=True)


def _user(login: Login, network: Network) -> User:
    console = network.console
    return User(
        login.name, login.user, tuple(each.value for each in login.roles),
        console is not None and login.name in console.credentials,
        login.password.kind, len(login.accept_also),
    )  # fmt: skip


def _found(network: Network, name: str) -> Login:
    found = network.logins.get(name)
    if found is None:
        raise NotFound(f"there is no user {name!r:.100}")
    return found


def _roles(given: Sequence[str]) -> tuple[Role, ...]:
    try:
        return roles_of(list(given))
    except ValueError as error:
        raise InvalidArgument(f"a role is {error}") from None


def _good(name: str, password: str) -> str:
    """As the file has it.  PasswordRefused."""
    passwords.check(f"the password of {name}", password)
    if "\n" in password or "\r" in password or "\0" in password:
        raise InvalidArgument(f"the password of {name} has more than one line")
    return password + "\n"


def _may_log_in(network: Network, roles: tuple[Role, ...], wanted: bool | None) -> bool:
    """At the console: who may look there does, unless it is said."""
    may = network.console is not None and bool(LOOKS & set(roles))
    if wanted and not may:
        raise InvalidArgument(
            "this instance has no [console]" if network.console is None
            else "who logs in at the console has the role admin or viewer"
        )  # fmt: skip
    return may if wanted is None else wanted


def _let_in(network: Network, edit: Edit, name: str, *, wanted: bool) -> None:
    if network.console is None:
        return
    names = [each for each in network.console.credentials if each != name]
    if wanted:
        names = [*names, name]
    if set(names) != set(network.console.credentials):
        edit.put(OF_CONSOLE, LISTED, names)


def _keep_keys(network: Network, edit: Edit, roles: tuple[Role, ...]) -> None:
    """An acceptor that has one user has the key of that one's password; with another user it is to
    be said whose, and stays what it was."""
    said = read_file(network.folder / FILE)
    for name, acceptor in network.acceptors.items():
        is_said = f"acceptors.{name}.credentials" in said
        if acceptor.credentials and not is_said and set(acceptor.roles) & set(roles):
            edit.put(f"acceptors.{name}", "credentials", acceptor.credentials)


def _check_admins(before: Network, after: Network) -> None:
    if _admins(before) and not _admins(after):
        [*_, last] = _admins(before)
        raise LastAdmin(
            f"{last} is the last admin who may log in at the console: add another one first"
        )


def _admins(network: Network) -> list[str]:
    names = () if network.console is None else network.console.credentials
    return [each for each in names if Role.ADMIN in network.logins[each].roles]
