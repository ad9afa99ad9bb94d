"""The options of addresses: where a broker listens, and how others reach it."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.instance.config.kind import FLAG, Kind, duration, is_name
from shmbroker.ipc.instance.config.option import Option
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.security.option import ROLES

HOUR: Final = 3600.0


def _listening(given: object) -> Single:
    if not isinstance(given, str):
        raise ValueError('an address to listen on, as in "tcp://*:61616"')
    return single(given)


def _reached(given: object) -> Single:
    if not isinstance(given, str):
        raise ValueError('the address of a broker, as in "tcp://host:61616"')
    found = single(given)
    if found.is_anywhere:
        raise ValueError("an address that others can connect to")
    return found


def _name(given: object) -> str:
    if not isinstance(given, str) or not is_name(given):
        raise ValueError("the NAME of a [credentials.NAME]")
    return given


def _patterns(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise ValueError('patterns of names, as in ["rack1.#"]')
    return tuple(given)


def _acceptor(name: str, kind: Kind, default: object, help: str) -> Option:
    return Option("acceptors.NAME", name, kind, default, help, is_reloaded=name != "uri")  # type: ignore[arg-type]


CONNECTORS: Final = (
    Option("connectors.NAME", "uri", Kind("uri", _reached), None,
           "How others reach a broker.", is_required=True, is_reloaded=True),
)  # fmt: skip
ACCEPTORS: Final = (
    Option("acceptors.NAME", "uri", Kind("uri", _listening), None,
           "Where this broker listens.", is_required=True),
    _acceptor("roles", ROLES, ["client"], "What the links that it admits may be for."),
    _acceptor("credentials", Kind("name", _name), None,
              "Whose password gives its key; not needed if only one may connect."),
    _acceptor("session-ttl", duration(0, 24 * HOUR), "60s",
              "How long the session of a silent client is kept."),
    _acceptor("update-cluster-clients", FLAG, False,
              "Tell programs of the other nodes of the cluster."),
    _acceptor("update-cluster-clients-on-remove", FLAG, False,
              "Also of one that has left: it is taken out of their lists."),
    _acceptor("rebalance-cluster-clients", FLAG, False,
              "Ask a share of the programs to move to a node that joins."),
    _acceptor("queue-replicas", FLAG, False,
              "Of role replica: here come brokers that follow single queues, and no members."),
    _acceptor("update-cluster-filter", Kind("patterns", _patterns), [],
              "Only of nodes whose live has such a name; `*` is one word, `#` any number."),
)  # fmt: skip
