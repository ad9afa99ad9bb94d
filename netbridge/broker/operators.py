"""What operators order over links, as they do by the same verbs on the broker's host: programs,
links and users, shown and changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument, NotAllowed
from shmbroker.ipc.connection.broker import SCHEME, connect
from shmbroker.ipc.instance.audit import audited
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.broker import links, programs
from shmbroker.netbridge.broker.links import LINKS
from shmbroker.netbridge.config.users import Change, Users, reload
from shmbroker.netbridge.serving.orders import LOOKS, USERS
from shmbroker.netbridge.serving.programs import PROGRAMS

Row = dict[str, Any]
LEAVES_SECONDS_MAX: Final = 60.0


class Operators:
    """An Error says why an order is not carried out."""

    def __init__(
        self, config: Config, log: Log, order: Callable[[Mapping[str, object]], object]
    ) -> None:
        """`order`: to this broker."""
        self._config, self._log, self._order = config, log, order

    def carry_out(self, given: Mapping[str, Any]) -> list[Row]:
        """In a thread that may wait for the broker; whether they may is known."""
        nouns = {PROGRAMS: self._of_programs, LINKS: self._of_links, USERS: self._of_users}
        carries_out = nouns.get(str(given.get("noun")))
        if carries_out is None:
            raise InvalidArgument(f"{given.get('noun')!r} is nothing that takes orders over links")
        return carries_out(str(given.get("verb")), given)

    def _of_programs(self, verb: str, given: Mapping[str, Any]) -> list[Row]:
        folder = self._config.folder
        if verb == LOOKS:
            return programs.of_folder(folder)
        if verb != "disconnect":
            raise InvalidArgument(f"a program is not {verb!r}")
        timeout = float(given.get("timeout", 0))
        if not 0 <= timeout <= LEAVES_SECONDS_MAX:
            raise InvalidArgument(f"a program has up to {LEAVES_SECONDS_MAX:g} s, not {timeout}")
        who, user, asks = (str(given.get(each)) for each in ("who", "user", "asks"))
        with connect(f"{SCHEME}{self._config.vhost}", name="an operator") as broker:
            done = programs.disconnected(broker, [folder], who, user, timeout, asks)
        return [asdict(done)]

    def _of_links(self, verb: str, given: Mapping[str, Any]) -> list[Row]:
        if verb == LOOKS:
            return links.fields_of(links.rows(self._config.vhost), self._config.vhost)
        self._order({"verb": verb, "name": given.get("name")})
        self._log.write("audit", verb=f"link {verb}", link=given.get("name"), user=given["user"])
        return []

    # --- users --------------------------------------------------------------------------------

    def _of_users(self, verb: str, given: Mapping[str, Any]) -> list[Row]:
        users, name = Users(self._config.folder, reload), str(given.get("name"))
        if verb == LOOKS:
            return [asdict(each) for each in users.listed()]
        change = _change(given)
        warning = None
        if verb != "add":
            self._check_other(users, name, str(given["login"]))
        does = "password" if verb == "change" and change.password is not None else verb
        with audited(self._log, verb=f"user {does}", name=name, user=given["user"]):
            if verb == "add":
                warning = users.add(name, _text(given, "called"), change)
            elif verb == "change":
                warning = users.change(name, change)
            elif verb == "remove":
                users.remove(name)
            else:
                raise InvalidArgument(f"a user is not {verb!r}")
        return [{"warning": warning}]

    def _check_other(self, users: Users, name: str, login: str) -> None:
        """The link of a user who is changed ends, and nobody would hear what came of it."""
        if any(each.name == name and each.user == login for each in users.listed()):
            raise NotAllowed(
                f"{name} is you, and this link would end: change yourself at the console, or on "
                f"the broker's host: shmbroker user {self._config.folder}"
            )


def _text(given: Mapping[str, Any], name: str) -> str | None:
    found = given.get(name)
    if found is not None and not isinstance(found, str):
        raise InvalidArgument(f"{name} is text, and not {found!r:.100}")
    return found


def _change(given: Mapping[str, Any]) -> Change:
    roles, logs_in = given.get("roles"), given.get("logs_in")
    if roles is not None and not (
        isinstance(roles, list) and all(isinstance(each, str) for each in roles)
    ):
        raise InvalidArgument(f"roles are a list of words, and not {roles!r:.100}")
    if logs_in is not None and not isinstance(logs_in, bool):
        raise InvalidArgument(f"logs_in is true or false, and not {logs_in!r:.100}")
    return Change(roles, logs_in, _text(given, "password"))
