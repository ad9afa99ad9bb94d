"""Connecting to a broker by its uri, or to one of a list."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.netbridge.client.closing import Closing
from shmbroker.netbridge.client.discovered import Discovered
from shmbroker.netbridge.client.face import AWAITING, BLOCKING
from shmbroker.netbridge.client.near import near
from shmbroker.netbridge.client.session import Session
from shmbroker.netbridge.client.waiting import Awaiting, Blocking, Way, finished
from shmbroker.netbridge.link.option import LINK_DEFAULTS, times_of
from shmbroker.netbridge.plan.terms import of_session
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import Found, Members, Single, Uri, singles
from shmbroker.netbridge.remote.options import Mode, SessionOptions
from shmbroker.netbridge.remote.topology import Node
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role

USER: Final = re.compile(r"tcp://([^/@,()?]*)@", re.IGNORECASE)
OPENING_SECONDS: Final = 1.0
"""At least, for one of the brokers that were found."""
NEAR: Final = "prefer-shared-memory"
Learns = Callable[[tuple[Node, ...]], None]
OF_LINKS: Final = {option.name for option in LINK_DEFAULTS}


def separated(uri: str, user: str | None, password: str | None) -> tuple[str, str, str]:
    """The uri without user and password, which may stand in it."""
    for each in USER.findall(uri):
        name, _, secret = each.partition(":")
        user, password = user or name, password or secret
    where = USER.sub("tcp://", uri)
    user = user or os.environ.get("SHMBROKER_USER")
    password = password or os.environ.get("SHMBROKER_PASSWORD")
    if not user or not password:
        shown = "this address" if "@" in where else where  # which may have one that is not found
        raise InvalidArgument(
            f"connecting to {shown} takes a user and a password: user= and password=, or "
            "SHMBROKER_USER and SHMBROKER_PASSWORD"
        )
    return where, user, password


def options_of(found: Uri) -> SessionOptions:
    values = getattr(found, "values", ())
    session = of_session(dict(values))
    return SessionOptions(
        failover_mode=Mode(session["failover-mode"]),
        reconnect_deadline=session["reconnect-deadline"],
        call_timeout=session["call-timeout"],
        call_failover_timeout=session["call-failover-timeout"],
        confirmation_window=session["confirmation-window"],
    )


def nothing(_: tuple[Node, ...]) -> None:
    """Is made of it."""


def as_found(members: Members) -> Members:
    return members


@dataclass(frozen=True, slots=True)
class Login:
    uri: str
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)
    name: str | None
    learns: Learns = field(default=nothing, repr=False)
    """Called with the nodes that its broker tells it of, in the session's thread."""
    orders: Callable[[Members], Members] = field(default=as_found, repr=False)
    """Of brokers that were found: whom to try first."""
    role: Role = Role.CLIENT
    """Of its links: an admin looks and gives orders, and is no program."""


def prefers_shared_memory(found: Uri) -> bool:
    """Of a list, unless it says otherwise; one address is a link, unless it does."""
    values = dict(getattr(found, "values", ()))
    is_list = not isinstance(found, Single)
    return bool(of_session(values)["prefer-shared-memory"] if is_list or NEAR in values else False)


async def opened(way: Way, login: Login) -> tuple[Session, str, bool]:
    """A session, the vhost that it asks for, and whether it may be had nearer."""
    where, user, password = separated(login.uri, login.user, login.password)
    found = parse(where)
    keys = Stretched(user, password)
    credential = Credential("client", user, (login.role,), (keys,))
    name = login.name or f"pid-{os.getpid()}"
    if not isinstance(found, Found):
        return await _opened(way, where, credential, name, login.learns)
    discovered = Discovered(way, found, keys)
    try:
        where = str(login.orders(await discovered.first()))
        return await _opened(way, where, credential, name, login.learns, discovered)
    except BaseException:
        discovered.close()
        raise


async def _opened(
    way: Way,
    where: str,
    credential: Credential,
    name: str,
    learns: Learns,
    discovered: Discovered | None = None,
) -> tuple[Session, str, bool]:
    found = parse(where)
    members = list(singles(found))
    if not members:
        raise InvalidArgument(f"{where!r} names no broker that is reached over TCP")
    of_link = {key: value for key, value in members[0].values if key in OF_LINKS}
    session = Session(way, where, credential, options_of(found), times_of(of_link), name, learns)
    if discovered is None:
        await session.open()
    else:  # an entry may be of a broker that is gone, and the next one of one that is there
        session.follows(discovered)
        await session.open(max(discovered.patience, OPENING_SECONDS))
    return session, members[0].vhost, prefers_shared_memory(found)


def connect(login: Login) -> Any:
    session, vhost, prefers = finished(opened(Blocking(), login))
    broker = BLOCKING["Broker"](session, vhost)
    return near(broker, login.name) if prefers else broker


class ConnectingOver(Closing):
    """What connect of asyncio answers: `async with` it, or await it."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._broker: Any = None

    async def _connect(self) -> Any:
        session, vhost, prefers = await opened(Awaiting(), self._login)
        broker = AWAITING["Broker"](session, vhost)
        return near(broker, self._login.name) if prefers else broker

    def __await__(self) -> Generator[Any, None, Any]:
        return self._connect().__await__()

    async def __aenter__(self) -> Any:
        self._broker = await self
        return self._broker

    async def _leave(self) -> None:
        if self._broker is not None:
            await self._broker.close()
