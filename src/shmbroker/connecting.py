"""Connecting: to a vhost of this host, or over a link to a broker on another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.connection.broker import SCHEME, Broker
from shmbroker.ipc.connection.broker import connect as connect_local
from shmbroker.ipc.vhost.vhost import ARENA_BYTES

if TYPE_CHECKING:
    from shmbroker.netbridge.client.cluster import Cluster
    from shmbroker.netbridge.client.connecting import Login


def connect(
    url: str,
    *,
    create: bool = False,
    name: str | None = None,
    spin: Seconds | None = None,
    observe: bool = False,
    arena_bytes: int = ARENA_BYTES,
    user: str | None = None,
    password: str | None = None,
) -> Broker:
    """Take part in the vhost shm://NAME; with `create` it is made if there is none.

    `name` is how people see us; the program's if it is left out.  `spin` is for how many seconds a
    wait looks before it sleeps: a few microseconds, unless you have a processor to spare.  Who
    observes looks only, is no participant, and repairs nothing.

    tcp://HOST:PORT/VHOST, and lists such as failover:(tcp://a,tcp://b), reach a broker on another
    host, as this user (docs/remote.md).  The verbs are the same; NotLocal says what cannot be.
    """
    if is_local(url):
        return connect_local(
            url, create=create, name=name, spin=spin, observe=observe, arena_bytes=arena_bytes
        )
    from shmbroker.netbridge.client import connecting  # with it comes pyzmq

    login = login_of(
        url, user=user, password=password, name=name, create=create, spin=spin, observe=observe
    )
    return cast(Broker, connecting.connect(login))


def is_local(url: str) -> bool:
    return not isinstance(url, str) or url.startswith(SCHEME) or ":" not in url


def login_of(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    name: str | None = None,
    create: bool = False,
    spin: Seconds | None = None,
    observe: bool = False,
) -> Login:
    from shmbroker.netbridge.client.connecting import Login

    local: dict[str, Any] = {"create": create, "spin": spin, "observe": observe}
    for option, value in local.items():
        if value:
            raise InvalidArgument(f"{option} is for shm://, and {url!r} is a broker over a link")
    return Login(url, user, password, name)


def cluster(
    uri: str, *, user: str | None = None, password: str | None = None, name: str | None = None
) -> Cluster:
    """Several brokers on other hosts, as a list names them (docs/remote.md).

    Each `session()` is a connection to one of them, chosen by `load-balancing`: round-robin,
    random, random-sticky, first, or "module:callable", which gets their addresses and answers an
    index.
    """
    from shmbroker.netbridge.client import connecting
    from shmbroker.netbridge.client.cluster import Cluster

    login = login_of(uri, user=user, password=password, name=name)
    return Cluster(login, connecting.connect)
