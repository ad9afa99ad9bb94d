"""The options of bridges: a queue of this broker that is shipped to another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from shmbroker.ipc.base.errors import SelectorError
from shmbroker.ipc.instance.config.kind import TEXT, Kind, count, duration, factor, is_name
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.ipc.selector.selector import Selector
from shmbroker.netbridge.link.option import LINK_DEFAULTS
from shmbroker.netbridge.plan.plans import drafts, with_rounds_asked_for
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import FAILOVER, STATIC, Found, Members, Single
from shmbroker.netbridge.wire.words import TargetKind

HOUR: Final = 3600.0
TABLE: Final = "bridges.NAME"
PACES: Final = {
    "initial-connect-attempts": "startup-max-reconnect-attempts",
    "reconnect-attempts": "max-reconnect-attempts",
    "retry-interval": "initial-reconnect-delay",
    "retry-interval-multiplier": "reconnect-delay-exponent",
    "max-retry-interval": "max-reconnect-delay",
}
"""Options of a bridge, and the parameters of `failover:` that they are."""
STATIC_PACES: Final = {
    "retry-interval": "initial-reconnect-delay",
    "retry-interval-multiplier": "back-off-multiplier",
    "max-retry-interval": "max-reconnect-delay",
}
OUTBOX: Final = "$bridge."
"""How the name of a queue begins that a bridge with a filter or a transformer ships."""


def outbox_of(bridge: str, queue: str) -> str:
    return f"{OUTBOX}{_in_name(bridge)}.{queue}"


def _in_name(bridge: str) -> str:
    """Without dots, so the first one is that before the name of the queue."""
    return bridge.replace("%", "%25").replace(".", "%2E")


def _service(given: object) -> Members | Single | Found:
    found = parse(given) if isinstance(given, str) else None
    if isinstance(found, Found):
        if found.means != "name":
            raise ValueError('the NAME of a [discovery.NAME] of this file, as in "discovery:lan"')
        return found
    if not isinstance(found, (Members, Single)) or len(drafts(found)) != 1:
        raise ValueError('one broker or one service, as in "tcp://host" or "masterslave:(a,b)"')
    return found


def _credentials(given: object) -> str:
    if not isinstance(given, str) or not is_name(given):
        raise ValueError("the NAME of a [credentials.NAME]")
    return given


def _selector(given: object) -> str:
    if not isinstance(given, str):
        raise ValueError("a selector, as in \"kind = 'order'\"")
    try:
        return Selector(given).text
    except SelectorError as error:
        raise ValueError(f"a selector: {error}") from None


def _function(given: object) -> str:
    module, _, name = given.partition(":") if isinstance(given, str) else ("", "", "")
    words = [*module.split("."), *name.split(".")]
    if not isinstance(given, str) or not all(each.isidentifier() for each in words):
        raise ValueError('a function, as in "our.bridges:stripped"')
    return given


def _address(given: object) -> str:
    if not isinstance(given, str) or not address_of(given)[1] or "\0" in given:
        raise ValueError('a queue or an exchange there, as in "orders" or "exchange://prices"')
    return given


def address_of(text: str) -> tuple[TargetKind, str]:
    """What is poured into there, and its name; a name without a scheme is a queue."""
    scheme, separator, name = text.partition("://")
    if not separator:
        return TargetKind.QUEUE, text
    kinds = (TargetKind.QUEUE, TargetKind.EXCHANGE)
    kind = next((each for each in kinds if each.value == scheme), None)
    return (TargetKind.QUEUE, "") if kind is None else (kind, name)


def _row(name: str, kind: Kind, default: Default | None, help: str, **more: bool) -> Option:
    return Option(TABLE, name, kind, default, help, is_reloaded=True, **more)


ROUNDS: Final = count(is_endless=True)
BRIDGES: Final = (
    _row("queue", TEXT, None, "The queue here; nobody else takes from it.", is_required=True),
    _row("to", Kind("uri", _service), None,
         "The other broker, the list of one service, or `discovery:NAME`.",
         is_required=True),
    _row("forwarding-address", Kind("address", _address), None,
         "The queue there, or `exchange://NAME`; the queue of the same name if left out."),
    _row("filter", Kind("selector", _selector), None,
         "It ships what this matches; the rest stays in the queue."),
    _row("transformer", Kind("function", _function), None,
         "`module:callable`, which changes each message."),
    _row("credentials", Kind("name", _credentials), None,
         "By which it connects; not needed if only one has the role `peering`."),
    _row("retry-interval", duration(0.001, HOUR), "2s", "Pause after the first failed round."),
    _row("retry-interval-multiplier", factor(1.0, 10.0), 1.0, "How much pauses grow."),
    _row("max-retry-interval", duration(0.001, HOUR), "2s", "Longest pause."),
    _row("initial-connect-attempts", ROUNDS, -1, "Rounds before the first success."),
    _row("reconnect-attempts", ROUNDS, -1, "Rounds after a loss; then it waits for `link start`."),
    *(replace(each, table=TABLE, default=None) for each in LINK_DEFAULTS),
)  # fmt: skip


def paced(to: Members | Single | Found, values: Mapping[str, Any]) -> Members:
    """The plan of a bridge: what its uri does not say is said by its options."""
    if not isinstance(to, Members):
        to = Members(FAILOVER, (to,) if isinstance(to, Single) else ())
    to = with_rounds_asked_for(to)
    names = PACES if to.scheme == FAILOVER else STATIC_PACES
    given = {parameter: values[name] for name, parameter in names.items()}
    inner = tuple(
        replace(each, values=_merged(_attempts(values), each))
        if isinstance(each, Members) and to.scheme == STATIC
        else each
        for each in to.members
    )
    return replace(to, members=inner, values=_merged(given, to))


def _attempts(values: Mapping[str, Any]) -> dict[str, Any]:
    return {PACES[name]: values[name] for name in PACES if name.endswith("attempts")}


def _merged(given: Mapping[str, Any], to: Members) -> tuple[tuple[str, Any], ...]:
    return tuple((dict(given) | dict(to.values)).items())
